#![forbid(unsafe_code)]
//! Which of many numbers are wanted, and the rank of each that is: a bit and a half a number.

use crate::system::memory;

pub struct Ranks {
    /// A bit for each number.
    wanted: Vec<u64>,
    /// How many are wanted before each word of bits.
    before: Vec<u32>,
}

impl Ranks {
    /// Of the numbers below *count*, those that *wanted* gives.
    pub fn new(count: usize, wanted: impl Iterator<Item = usize>) -> Ranks {
        let mut bits = memory::zeros::<u64>(count.div_ceil(64));
        for number in wanted {
            bits[number / 64] |= 1 << (number % 64);
        }
        let mut sum = 0;
        let before_each = |word: &u64| {
            sum += word.count_ones();
            sum - word.count_ones()
        };
        Ranks { before: memory::gathered(bits.iter().map(before_each)), wanted: bits }
    }

    /// How many are wanted.
    pub fn len(&self) -> usize {
        let last = self.wanted.last().map_or(0, |word| word.count_ones());
        (self.before.last().copied().unwrap_or(0) + last) as usize
    }

    /// How many wanted ones are smaller than *number*, if it is wanted itself.
    #[inline]
    pub fn of(&self, number: u32) -> Option<usize> {
        let (at, bit) = (number as usize / 64, 1 << (number % 64));
        let word = *self.wanted.get(at)?;
        (word & bit != 0).then(|| (self.before[at] + (word & (bit - 1)).count_ones()) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_numbers_are_ranked() {
        for (count, step) in [(0, 1), (1, 1), (64, 1), (65, 3), (1000, 7), (1000, 63), (1000, 999)] {
            let wanted: Vec<usize> = (0..count).filter(|number| number % step == 0).collect();
            let ranks = Ranks::new(count, wanted.iter().copied());
            assert_eq!(ranks.len(), wanted.len());
            for number in 0..count + 70 {
                assert_eq!(ranks.of(number as u32), wanted.iter().position(|one| *one == number));
            }
        }
    }
}
