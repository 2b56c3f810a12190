"""The matrix as text."""


def table(results):
    """Give rows of cells, as ``{row: {column: text}}``, as lines; a dash where a cell has no meaning."""
    columns = list(dict.fromkeys(column for cells in results.values() for column in cells))
    lines = [
        ["", *columns],
        *([row, *(cells.get(column, "-") for column in columns)] for row, cells in results.items()),
    ]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)
