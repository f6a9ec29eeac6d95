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
                // SAFETY: the level says that the machine has the features; all include AVX2 and BMI2.
                return unsafe {
                    if gathers_slowly() { self.extract_runs_avx2(rows, keys) } else { self.extract_pext(rows, keys) }
                };
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
    #[target_feature(enable = "avx2")]
    fn extract_runs_avx2<const W: usize>(&self, rows: &[[u64; W]], keys: &mut [u32; BATCH]) {
        self.extract_runs(rows, keys); // inlined here, so compiled for AVX2
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

/// Whether the instruction that gathers bits takes a step for each of them, as it does before Zen 3.
#[cfg(target_arch = "x86_64")]
fn gathers_slowly() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::OnceLock;

    static SLOWLY: OnceLock<bool> = OnceLock::new();
    *SLOWLY.get_or_init(|| {
        #[allow(unused_unsafe, reason = "safe in later versions of Rust")]
        // SAFETY: every x86-64 processor says what it is.
        let (name, version) = unsafe { (__cpuid(0), __cpuid(1)) };
        is_before_zen_3([name.ebx, name.edx, name.ecx], version.eax)
    })
}

/// By the twelve letters of the vendor and the number of the processor.
#[cfg(target_arch = "x86_64")]
fn is_before_zen_3(vendor: [u32; 3], version: u32) -> bool {
    let is = |name: &[u8; 12]| vendor.iter().flat_map(|four| four.to_le_bytes()).eq(*name);
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    (is(b"AuthenticAMD") || is(b"HygonGenuine")) && family < 0x19
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

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn zen_1_and_2_gather_slowly() {
        let vendor = |name: &str| -> [u32; 3] {
            std::array::from_fn(|at| u32::from_le_bytes(name.as_bytes()[4 * at..4 * at + 4].try_into().unwrap()))
        };
        let (amd, intel) = (vendor("AuthenticAMD"), vendor("GenuineIntel"));
        for (zen, slow) in [(0x0080_0f11, true), (0x0083_0f10, true), (0x00a2_0f10, false), (0x00b4_0f40, false)] {
            assert_eq!(is_before_zen_3(amd, zen), slow, "{zen:x}");
        }
        assert!(is_before_zen_3(vendor("HygonGenuine"), 0x0090_0f02));
        assert!(!is_before_zen_3(intel, 0x000a_0671));
    }

    #[test]
    fn runs_give_the_keys_that_gathered_bits_give() {
        let rows: Vec<[u64; 2]> = (1..=100u64).map(|i| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i << 40 | 77]).collect();
        let key = Key::new(&[0x8421_8421_8421, 0x1111]);
        let mut keys = [0; BATCH];
        key.extract_runs(&rows, &mut keys);
        assert!(rows.iter().zip(keys).all(|(row, found)| key.of(row) == found));
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
