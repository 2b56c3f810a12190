"""Choose a few cells of a table that still contain every value, and every pair of values, that the table has."""


def covering(cells, parts):
    """Return cells that together have every part which any cell has, in the order of the table.

    ``parts(cell)`` is a set, such as the pairs of values of a cell. The choice is greedy, which needs few cells, and
    the same for the same table: each time the cell that adds most parts, the first one of several.
    """
    of_cells = [parts(cell) for cell in cells]
    missing, chosen = set().union(*of_cells), set()
    while missing:
        best = max(range(len(cells)), key=lambda number: len(of_cells[number] & missing))
        chosen.add(best)
        missing -= of_cells[best]
    return [cells[number] for number in sorted(chosen)]
