from torch import nn

from layers.functional import rotate_half


def rotate(q, k, cos, sin):
    q = q * cos + rotate_half(q) * sin  #> rotary recommended
    k = k * cos + rotate_half(k) * sin  #<
    return q, k
