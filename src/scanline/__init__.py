"""scanline: train Atari agents fast on the machine at hand."""
