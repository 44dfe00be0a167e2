"""Studies: grids of training runs, one process a run, compared by time to accuracy.

Planning: `grid` (a study and its runs), `rows` (the papers' studies), `grid_files` (a user's TOML
grids), `plans` (time and cost, before the first run and left). Running:
`store` (the study's folder), `runner` (processes), `outcomes` (result of each run).
Reporting: `summaries` (of settings), `findings` (sentences), `figures`,
`reports`.

May import: recipe, recipes, runs, submission (prices), models (the catalogue), the shared modules.
Never: TensorFlow, data, training, inference, ranking.
"""
