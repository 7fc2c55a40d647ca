#!/usr/bin/env python3
"""Makes the traces of the examples; the standard library suffices.

    python3 generate.py rain > rain.csv
    python3 generate.py leo > leo.csv

`rain` is a carrier of 5 Mbaud with the adaptive coding of DVB-S2, whose modes DVB-S2X keeps, under a
shower: the attenuation rises and falls as a raised cosine, and scintillation of 0.3 dB is added. The
modem uses the highest mode whose threshold is 1 dB below the present Es/N0, and changes it at most
once a second; below the lowest threshold nothing is sent.

`leo` is the path from a user over a satellite at 550 km to a ground station, planned again every
15 s: of the satellites that both see at 25 degrees or more one is drawn. Orbits are circular, in 72
planes of 22 satellites at 53 degrees. A change of the satellite costs 0.1 s with a loss of 10 %.
"""
import math
import random
import sys

# EN 302 307-1, table 13: Es/N0 in dB for quasi-error-free reception (normal frames, no pilots), and
# bits per symbol.
MODES = [
    (-2.35, 0.490243), (-1.24, 0.656448), (-0.30, 0.789412), (1.00, 0.988858), (2.23, 1.188304),
    (3.10, 1.322253), (4.03, 1.487473), (4.68, 1.587196), (5.18, 1.654663), (6.62, 1.980636),
    (7.91, 2.228124), (8.97, 2.637201), (10.21, 2.966728), (11.03, 3.165623), (11.61, 3.300184),
    (12.73, 3.703295), (13.64, 3.951571), (14.28, 4.119540), (15.69, 4.397854), (16.05, 4.453027),
]
SYMBOLS_PER_S = 5e6
CLEAR_DB, FADE_DB, MARGIN_DB = 13.0, 14.0, 1.0


def rain(seconds=300):
    """Rates of a rain fade from 60 s to 240 s."""
    chance = random.Random(1)
    print("# DVB-S2 modes under a rain fade: generate.py rain")
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


EARTH, ALTITUDE, LIGHT = 6_371e3, 550e3, 299_792_458.0
PLANES, IN_PLANE, INCLINATION = 72, 22, math.radians(53)
TURN = 2 * math.pi * math.sqrt((EARTH + ALTITUDE) ** 3 / 3.986004418e14)
USER, STATION = (48.0, 11.0), (45.5, 9.0)
PROCESSING_MS = 8.0


def on_ground(latitude, longitude, seconds):
    """A place in inertial coordinates."""
    angle = math.radians(longitude) + 2 * math.pi * seconds / 86_164
    phi = math.radians(latitude)
    return [EARTH * math.cos(phi) * math.cos(angle), EARTH * math.cos(phi) * math.sin(angle),
            EARTH * math.sin(phi)]


def satellite(plane, place, seconds):
    """A satellite in inertial coordinates."""
    node = 2 * math.pi * plane / PLANES
    angle = 2 * math.pi * (place / IN_PLANE + plane / (PLANES * IN_PLANE) + seconds / TURN)
    radius = EARTH + ALTITUDE
    x, y = radius * math.cos(angle), radius * math.sin(angle) * math.cos(INCLINATION)
    return [x * math.cos(node) - y * math.sin(node), x * math.sin(node) + y * math.cos(node),
            radius * math.sin(angle) * math.sin(INCLINATION)]


def elevation_and_distance(ground, space):
    """Elevation in degrees and distance in metres."""
    between = [b - a for a, b in zip(ground, space)]
    distance = math.sqrt(sum(part * part for part in between))
    up = sum(a * b for a, b in zip(ground, between)) / (EARTH * distance)
    return math.degrees(math.asin(up)), distance


def leo(seconds=300, plan=15):
    """Delays of a path with hand-overs."""
    chance = random.Random(2)
    print("# A path over satellites at 550 km, planned every 15 s: generate.py leo")
    print("time_s,delay_ms,loss")
    last = None
    for start in range(0, seconds, plan):
        ends = [on_ground(*USER, start), on_ground(*STATION, start)]
        seen = []
        for plane in range(PLANES):
            for place in range(IN_PLANE):
                at = satellite(plane, place, start)
                if all(elevation_and_distance(end, at)[0] >= 25 for end in ends):
                    seen.append((plane, place))
        chosen = chance.choice(seen)
        for second in range(start, start + plan):
            ends = [on_ground(*USER, second), on_ground(*STATION, second)]
            at = satellite(*chosen, second)
            metres = sum(elevation_and_distance(end, at)[1] for end in ends)
            delay = metres / LIGHT * 1e3 + PROCESSING_MS
            if second == start and last not in (None, chosen):
                print(f"{second},{delay:.3f},0.1")
                print(f"{second}.1,{delay:.3f},0")
            else:
                print(f"{second},{delay:.3f},0")
        last = chosen


if __name__ == "__main__":
    {"rain": rain, "leo": leo}[sys.argv[1]]()
