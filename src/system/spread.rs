#![forbid(unsafe_code)]
//! Places in tables that nobody outside can foretell.
//!
//! Who knows a hash can choose keys that all belong to one place of a table, and every look-up then passes all of
//! them: time grows with the square of the input. So the place is not given by the key alone, but also by numbers that
//! are drawn again in each process. Neither what a table answers nor anything that is written depends on them.

use std::hash::BuildHasher;
use std::sync::OnceLock;

#[cfg(not(feature = "instructions"))]
type State = std::hash::RandomState;
/// Instructions are counted in programs that do the same each time.
#[cfg(feature = "instructions")]
type State = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

#[derive(Clone, Copy)]
pub struct Spread {
    mask: u64,
    times: u64,
}

impl Spread {
    /// The one of this process.
    pub fn own() -> Spread {
        static OWN: OnceLock<Spread> = OnceLock::new();
        *OWN.get_or_init(|| {
            let state = State::default();
            Spread { mask: state.hash_one(1u8), times: state.hash_one(2u8) | 1 }
        })
    }

    /// 64 bits that a key gives, all of them as good as random.
    #[inline(always)]
    pub fn of(self, key: u64) -> u64 {
        // Once is not enough: keys that count upwards would crowd under some factors.
        self.folded(self.folded(key ^ self.mask))
    }

    #[inline(always)]
    fn folded(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(self.times);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_in_any_few_bits_are_spread_evenly() {
        let spread = Spread::own();
        // Whatever bits the keys count in, and whatever bits the table looks at.
        for low in 0..52 {
            for shift in [0, 20, 52] {
                let mut cells = [0u32; 1 << 12];
                for key in 0..1u64 << 12 {
                    cells[(spread.of(key << low | 1 << 63) >> shift) as usize & 0xfff] += 1;
                }
                let squares: u32 = cells.iter().map(|count| count * count).sum();
                assert!(squares < 3 << 12, "counting from bit {low}, looked at from bit {shift}: {squares}");
            }
        }
    }
}
