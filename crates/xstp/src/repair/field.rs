//! Arithmetic of GF(2⁸) with the polynomial x⁸ + x⁴ + x³ + x² + 1 (0x11d, XSTP-15.1.1).
//!
//! Single elements are multiplied by tables of logarithms. Sums of multiplied packets, which are
//! the cost of the code, need no table: Σ cᵢ pᵢ is computed by bits, as Σ 2ᵇ (Σ pᵢ with bit b set
//! in cᵢ), which is four exclusive-ors of whole packets on average for each packet, and seven
//! doublings for the sum. Compilers make vector instructions of both.

use super::LENGTH_OCTETS;
use alloc::vec::Vec;

const POLYNOMIAL: u16 = 0x11d;

/// 2ⁱ for i from 0 to 509, so that the sum of two logarithms is an index.
const POWERS: [u8; 510] = powers();
/// Logarithms to the base 2; that of zero is not used.
const LOGARITHMS: [u8; 256] = logarithms();

const fn powers() -> [u8; 510] {
    let mut powers = [0; 510];
    let mut value: u16 = 1;
    let mut i = 0;
    while i < powers.len() {
        powers[i] = value as u8;
        value <<= 1;
        if value > 0xff {
            value ^= POLYNOMIAL;
        }
        i += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let mut logarithms = [0; 256];
    let mut i = 0;
    while i < 255 {
        logarithms[POWERS[i] as usize] = i as u8;
        i += 1;
    }
    logarithms
}

/// Product of two elements.
pub(super) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let sum = usize::from(LOGARITHMS[usize::from(a)]) + usize::from(LOGARITHMS[usize::from(b)]);
    POWERS[sum]
}

/// Inverse of an element that is not zero.
pub(super) fn inverse(a: u8) -> u8 {
    POWERS[255 - usize::from(LOGARITHMS[usize::from(a)])]
}

/// Sum of packets and symbols, each multiplied by a coefficient.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// Plane b is the sum of what has bit b set in its coefficient.
    planes: [Vec<u8>; 8],
}

impl Sum {
    /// Begins a sum of `len` octets.
    pub(super) fn begin(&mut self, len: usize) {
        for plane in &mut self.planes {
            plane.clear();
            plane.resize(len, 0);
        }
    }

    /// Adds `coefficient` times a packet, with its length before it. The sum is long enough.
    pub(super) fn add_packet(&mut self, coefficient: u8, payload: &[u8]) {
        let length = u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes();
        self.each_plane(coefficient, |plane| {
            add(plane, &length);
            add(&mut plane[LENGTH_OCTETS..], payload);
        });
    }

    /// Adds `coefficient` times a symbol. The sum is long enough.
    pub(super) fn add_symbol(&mut self, coefficient: u8, symbol: &[u8]) {
        self.each_plane(coefficient, |plane| add(plane, symbol));
    }

    fn each_plane(&mut self, coefficient: u8, add: impl Fn(&mut [u8])) {
        for (bit, plane) in self.planes.iter_mut().enumerate() {
            if coefficient & (1 << bit) != 0 {
                add(plane);
            }
        }
    }

    /// The sum.
    pub(super) fn total(&mut self) -> &[u8] {
        let [lower @ .., total] = &mut self.planes;
        for plane in lower.iter().rev() {
            for (octet, lower) in total.iter_mut().zip(plane) {
                let reduced = if *octet & 0x80 == 0 { 0 } else { POLYNOMIAL as u8 };
                *octet = (*octet << 1) ^ reduced ^ lower;
            }
        }
        total
    }
}

/// Adds `octets` to the start of `sum`.
fn add(sum: &mut [u8], octets: &[u8]) {
    for (sum, octet) in sum.iter_mut().zip(octets) {
        *sum ^= octet;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Multiplication of polynomials, bit by bit.
    fn slow(a: u8, b: u8) -> u8 {
        let (mut product, mut a) = (0, u16::from(a));
        for bit in 0..8 {
            if b & (1 << bit) != 0 {
                product ^= a as u8;
            }
            a <<= 1;
            if a > 0xff {
                a ^= POLYNOMIAL;
            }
        }
        product
    }

    /// XSTP-15.1.1
    #[test]
    fn products_and_inverses_are_those_of_polynomials() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), slow(a, b), "{a} {b}");
            }
            assert!(a == 0 || multiply(a, inverse(a)) == 1, "{a}");
        }
    }

    #[test]
    fn sums_by_bits_are_sums_of_products() {
        let packets: Vec<Vec<u8>> = (0..40_u8)
            .map(|i| (0..=i).map(|j| i.wrapping_mul(29) ^ j.wrapping_mul(71)).collect())
            .collect();
        let mut expected = vec![0; 45];
        let mut sum = Sum::default();
        sum.begin(45);
        for (i, packet) in packets.iter().enumerate() {
            let coefficient = (i * 37 % 256) as u8;
            sum.add_packet(coefficient, packet);
            let octets = [0, packet.len() as u8].into_iter().chain(packet.iter().copied());
            for (expected, octet) in expected.iter_mut().zip(octets) {
                *expected ^= slow(coefficient, octet);
            }
        }
        assert_eq!(sum.total(), expected);
    }
}
