"""Studies: grids of training runs, carried out one process each, and what they come to.

Here: `grid`, what a study is and the runs it plans; `rows`, the paper's own; `grid_files`, a
user's; `multiples`, their settings; `store`, a study's folder; `launching`, `runner`, processes;
`forecast`, how long they take; `outcomes`, what became of each run; `estimates`, statistics;
`summaries`, settings compared; `findings`, sentences; `figures`, `page` and `reports`.

May import: recipe, recipes, models (the catalogue), the shared modules. Never: TensorFlow, data,
training, inference, submission, ranking.
"""
