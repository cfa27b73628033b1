"""Least squares for the laboratory, where no NumPy is needed."""


def least_squares(rows, values):
    """Of rows * unknowns = values, by the normal equations."""
    size = len(rows[0])
    matrix = [[sum(r[i] * r[j] for r in rows) for j in range(size)] + [sum(r[i] * v for r, v in zip(rows, values))]
              for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for k in range(size):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i])]
    return [matrix[i][size] / matrix[i][i] for i in range(size)]
