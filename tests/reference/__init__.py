"""NumPy reference cells, written from the papers, for comparison with ``attractor.cells``.

Each cell has one file, whose ``run`` takes one sequence through the equations with plain loops, one
example at a time, in float64. Matrices have the paper's orientation (rows are outputs) and are
never stacked. Random draws are arguments. ``run`` returns ``(outputs, state, steps)``: the outputs,
everything carried past the last step, and the intermediate quantities of each step. Where a file
has ``shapes``, it names every weight that ``run`` reads.

"Left open by the paper" in a docstring lists each decision that the equations do not settle. None
of them was settled by looking at ``attractor.cells``.

References:
    S. Chandar (2019), On Challenges in Training Recurrent Neural Networks, PhD thesis, Université
    de Montréal: the equations (2.x), (3.x) and (4.x) of "Chandar's thesis".
"""
