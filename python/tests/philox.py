"""The random numbers of a sample, computed independently of shardtool."""

import math


def philox(counter, key):
    """The four words of a counter: Philox4x32-10, as described in docs/format.md and by Salmon et al. (2011)."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


class Draws:
    """Numbers from 0 to 1 in the order in which a sample draws them. ``view``: 0, or the number of a view from 1 on."""

    def __init__(self, seed, epoch, number, view=0):
        self.seed, self.epoch, self.number, self.view, self.at = seed, epoch, number, view, 0

    def next(self):
        counter = (self.at // 4, self.number, 0x80000000 + (self.view << 21), self.epoch)
        self.at += 1
        return philox(counter, (self.seed & 0xFFFFFFFF, self.seed >> 32))[(self.at - 1) % 4] / 2**32

    def below(self, n):
        return math.floor(self.next() * n)

    def crop(self, width, height, scale):
        """The crop of RandomResizedCrop: top, left, height, width."""
        low, high = math.log(3 / 4), math.log(4 / 3)
        for _ in range(10):
            area = width * height * (scale[0] + (scale[1] - scale[0]) * self.next())
            ratio = math.exp(low + (high - low) * self.next())
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top = self.below(height - h + 1)
                return top, self.below(width - w + 1), h, w
        # None fits: the largest one in the center (torchvision's fallback).
        w = round(height * 4 / 3) if width / height > 4 / 3 else width
        h = round(width / (3 / 4)) if width / height < 3 / 4 else height
        return (height - h) // 2, (width - w) // 2, h, w
