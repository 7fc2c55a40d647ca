#!/usr/bin/env python3
"""Makes the rain fade of the examples; the standard library suffices.

    python3 generate.py > rain.csv

It is a carrier of 5 Mbaud with the adaptive coding of DVB-S2, whose modes DVB-S2X keeps, under a
shower: the attenuation rises and falls as a raised cosine, and scintillation of 0.3 dB is added. The
modem uses the highest mode whose threshold is 1 dB below the present Es/N0, and changes it at most
once a second; below the lowest threshold nothing is sent.
"""
import math
import random
import sys

# EN 302 307-1, table 13: Es/N0 in dB for quasi-error-free reception (normal frames, no pilots), and
# bits per symbol; without modes that carry less than another with a lower threshold.
MODES = [
    (-2.35, 0.490243), (-1.24, 0.656448), (-0.30, 0.789412), (1.00, 0.988858), (2.23, 1.188304),
    (3.10, 1.322253), (4.03, 1.487473), (4.68, 1.587196), (5.18, 1.654663), (5.50, 1.779991),
    (6.62, 1.980636), (7.91, 2.228124), (8.97, 2.637201), (10.21, 2.966728), (11.03, 3.165623),
    (11.61, 3.300184), (12.73, 3.703295), (13.64, 3.951571), (14.28, 4.119540), (15.69, 4.397854),
    (16.05, 4.453027),
]
SYMBOLS_PER_S = 5e6
CLEAR_DB, FADE_DB, MARGIN_DB = 13.0, 14.0, 1.0


def rain(seconds=300):
    """Rates of a rain fade from 60 s to 240 s."""
    chance = random.Random(1)
    print("# DVB-S2 modes under a rain fade: generate.py")
    print("time_s,rate_bit_s")
    last = None
    for second in range(seconds):
        depth = 0.0
        if 60 <= second <= 240:
            depth = FADE_DB * (1 - math.cos(2 * math.pi * (second - 60) / 180)) / 2
        signal = CLEAR_DB - depth + chance.gauss(0, 0.3)
        fitting = [bits for threshold, bits in MODES if threshold + MARGIN_DB <= signal]
        rate = round(max(fitting, default=0.0) * SYMBOLS_PER_S)
        if rate != last or second == seconds - 1:
            print(f"{second},{rate}")
        last = rate


if __name__ == "__main__":
    rain()
