//! Keys: the bits of a fingerprint that a table looks at, gathered into one small number.

use crate::system::simd::{Level, level};

/// Which bits make the key. At most 32 of them; bit order is low to high.
#[derive(Clone, Debug)]
pub struct Key {
    #[cfg(target_arch = "x86_64")]
    parts: Vec<Part>,
    runs: Vec<Run>,
    pub width: u32,
}

/// All bits of one word, for the machine's bit gathering instruction.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
struct Part {
    word: usize,
    mask: u64,
    shift: u32,
}

/// Adjacent bits of one word: shift down, cut, shift up.
#[derive(Clone, Copy, Debug)]
struct Run {
    word: usize,
    down: u32,
    cut: u64,
    up: u32,
}

/// Rows whose keys are made at once: their keys stay in the first-level cache.
pub const BATCH: usize = 1024;

impl Key {
    pub fn new(mask: &[u64]) -> Key {
        #[cfg(target_arch = "x86_64")]
        let mut parts = Vec::new();
        let mut runs = Vec::new();
        let mut width = 0;
        for (word, &mask) in mask.iter().enumerate() {
            if mask == 0 {
                continue;
            }
            #[cfg(target_arch = "x86_64")]
            parts.push(Part { word, mask, shift: width });
            let mut left = mask;
            while left != 0 {
                let down = left.trailing_zeros();
                let length = (left >> down).trailing_ones();
                let cut = if length == 64 { u64::MAX } else { (1 << length) - 1 };
                runs.push(Run { word, down, cut, up: width });
                left &= !(cut << down);
                width += length;
            }
        }
        assert!(width <= 32, "a key has at most 32 bits");
        Key {
            #[cfg(target_arch = "x86_64")]
            parts,
            runs,
            width,
        }
    }

    #[inline(always)]
    pub fn of<const W: usize>(&self, row: &[u64; W]) -> u32 {
        self.of_words(row)
    }

    #[inline(always)]
    pub fn of_words(&self, row: &[u64]) -> u32 {
        let mut key = 0;
        for run in &self.runs {
            key |= ((row[run.word] >> run.down) & run.cut) << run.up;
        }
        key as u32
    }

    /// The key of every row, at most `BATCH` of them.
    pub fn extract<const W: usize>(&self, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
        #[cfg(target_arch = "x86_64")]
        match level() {
            Level::Avx512 | Level::Avx512Base if self.runs.len() <= 3 => {
                // SAFETY: the level says that the machine has the features.
                return unsafe { self.extract_runs_avx512(rows, keys) };
            }
            Level::Avx512 | Level::Avx512Base | Level::Avx2 => {
                // SAFETY: the level says that the machine has the features; all include BMI2.
                return unsafe { self.extract_pext(rows, keys) };
            }
            Level::Scalar | Level::Neon => {}
        }
        let _ = (level, Level::Scalar);
        self.extract_runs(rows, keys);
    }

    #[inline(always)]
    fn extract_runs<const W: usize>(&self, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
        for (run_number, run) in self.runs.iter().enumerate() {
            let Run { word, down, cut, up } = *run;
            let word = word.min(W - 1);
            if run_number == 0 {
                for (row, key) in rows.iter().zip(keys.iter_mut()) {
                    *key = (((row[word] >> down) & cut) << up) as u32;
                }
            } else {
                for (row, key) in rows.iter().zip(keys.iter_mut()) {
                    *key |= (((row[word] >> down) & cut) << up) as u32;
                }
            }
        }
        if self.runs.is_empty() {
            keys.fill(0);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn extract_runs_avx512<const W: usize>(&self, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
        self.extract_runs(rows, keys); // inlined here, so compiled for AVX-512
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2")]
    fn extract_pext<const W: usize>(&self, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
        match self.parts[..] {
            [one] => gather([one], rows, keys),
            [one, two] => gather([one, two], rows, keys),
            [one, two, three] => gather([one, two, three], rows, keys),
            [one, two, three, four] => gather([one, two, three, four], rows, keys),
            _ => gather(&self.parts, rows, keys),
        }
    }
}

/// The keys of rows, with all *parts* at once where their number is known.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
fn gather<const W: usize>(parts: impl AsRef<[Part]>, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
    for (row, key) in rows.iter().zip(keys.iter_mut()) {
        let mut value = 0;
        for part in parts.as_ref() {
            value |= std::arch::x86_64::_pext_u64(row[part.word.min(W - 1)], part.mask) << part.shift;
        }
        *key = value as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn a_key_gathers_the_bits_of_its_mask() {
        let key = Key::new(&[0xf0, 0b101]);
        assert_eq!(key.width, 6);
        assert_eq!(key.of(&[0xa0, 0b100]), 0b10_1010);
    }

    #[test]
    fn every_level_gives_the_same_keys() {
        let rows: Vec<[u64; 2]> =
            (1..=100u64).map(|i| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i.wrapping_mul(i << 40 | 77)]).collect();
        for mask in [[0xffff, 0], [0x8421_8421_8421, 0x1111], [0, 0xff00_00ff], [0, 0]] {
            let key = Key::new(&mask);
            let expected: Vec<u32> = rows.iter().map(|row| key.of(row)).collect();
            at_every_level(|name| {
                let mut keys = [0; BATCH];
                key.extract(&rows, &mut keys);
                assert_eq!(keys[..100], expected, "{name}");
            });
        }
    }
}
