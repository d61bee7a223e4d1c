import unittest

from matrix import multiply, rotate, trace, transpose


class MatrixTest(unittest.TestCase):
    def test_transpose(self):
        self.assertEqual(transpose([[1, 2], [3, 4]]), [[1, 3], [2, 4]])
        self.assertEqual(transpose([[1, 2, 3]]), [[1], [2], [3]])

    def test_multiply(self):
        self.assertEqual(multiply([[1, 2]], [[3], [4]]), [[11]])
        self.assertEqual(multiply([[1, 0], [0, 1]], [[5, 6], [7, 8]]), [[5, 6], [7, 8]])

    def test_rotate(self):
        self.assertEqual(rotate([[1, 2], [3, 4]]), [[3, 1], [4, 2]])
        self.assertEqual(rotate([[1, 2]]), [[1], [2]])

    def test_trace(self):
        self.assertEqual(trace([[1, 2], [3, 4]]), 5)
        self.assertEqual(trace([[7]]), 7)
