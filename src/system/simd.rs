//! Which instruction set the kernels use, decided at run time.
//!
//! `NEARDUP_SIMD` asks for a level by its name; instead of one that the processor does not have, the best below it is
//! used. All levels give the same answers, bit for bit.

use std::sync::atomic::{AtomicU8, Ordering};

/// From the plainest to the best. A processor has some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Scalar,
    Neon,
    Avx2,
    Avx512Base,
    Avx512,
}

pub const LEVELS: [Level; 5] = [Level::Scalar, Level::Neon, Level::Avx2, Level::Avx512Base, Level::Avx512];

const UNREAD: u8 = u8::MAX;
static CURRENT: AtomicU8 = AtomicU8::new(UNREAD);

/// The level in use: what the environment asks for, or the best the machine has.
pub fn level() -> Level {
    #[cfg(test)]
    if let Some(level) = tests::OWN.get() {
        return level;
    }
    match LEVELS.get(usize::from(CURRENT.load(Ordering::Relaxed))) {
        Some(level) => *level,
        None => {
            let asked = std::env::var("NEARDUP_SIMD").unwrap_or_default();
            let level = best(named(&asked).unwrap_or(Level::Avx512));
            CURRENT.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Use the level of this name from now on, or the best the machine has below it; "" asks the environment again.
pub fn set_level(name: &str) -> Result<(), String> {
    let value = match named(name) {
        Some(level) => best(level) as u8,
        None if name.is_empty() => UNREAD,
        None => {
            let known = LEVELS.map(Level::name).join(", ");
            return Err(format!("unknown SIMD level {name:?}; known: {known}"));
        }
    };
    CURRENT.store(value, Ordering::Relaxed);
    Ok(())
}

/// The levels that this processor has, from the plainest to the best.
pub fn here() -> impl Iterator<Item = Level> {
    LEVELS.into_iter().filter(|level| level.is_here())
}

fn named(name: &str) -> Option<Level> {
    LEVELS.into_iter().find(|level| level.name() == name)
}

/// The best level that this processor has, up to *most*.
fn best(most: Level) -> Level {
    here().filter(|level| *level <= most).last().unwrap_or(Level::Scalar)
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512Base => "avx512-base",
            Level::Avx512 => "avx512",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_here(self) -> bool {
        match self {
            Level::Scalar => true,
            Level::Neon => false,
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            Level::Avx512Base => {
                Level::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            Level::Avx512 => {
                Level::Avx512Base.is_here()
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("avx512bitalg")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("gfni")
            }
        }
    }

    /// Every processor of aarch64 has NEON.
    #[cfg(target_arch = "aarch64")]
    fn is_here(self) -> bool {
        self <= Level::Neon
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_here(self) -> bool {
        self == Level::Scalar
    }
}

/// A token for the instructions of AVX2: code that has one may use the kernels for it. So with the others. Each
/// kernel has a portable twin that gives the same bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx2(());

/// AVX-512 F, BW, DQ and VL.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512Base(());

/// These, and VBMI, VBMI2, BITALG, VPOPCNTDQ and GFNI.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512(());

#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
pub struct Neon(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx2> {
        (level() >= Level::Avx2).then_some(Avx2(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx512Base {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx512Base> {
        (level() >= Level::Avx512Base).then_some(Avx512Base(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx512> {
        (level() == Level::Avx512).then_some(Avx512(()))
    }
}

#[cfg(target_arch = "aarch64")]
impl Neon {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Neon> {
        (level() == Level::Neon).then_some(Neon(()))
    }
}

/// Ask for the memory of *value*, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_at(std::ptr::from_ref(value).addr());
}

/// The same for an address, whatever it is.
#[inline(always)]
pub fn prefetch_at(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch reads nothing, and faults nowhere.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
    let _ = address;
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub static OWN: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Call *check* at every level that the machine has: with its name, and in this thread only, since other tests
    /// run beside it.
    pub fn at_every_level(mut check: impl FnMut(&str)) {
        for level in here() {
            OWN.set(Some(level));
            check(level.name());
        }
        OWN.set(None);
    }

    /// A test of a level on a machine that has another would test nothing.
    #[test]
    fn the_best_level_is_the_one_that_whoever_emulates_a_processor_expects() {
        if let Ok(expected) = std::env::var("NEARDUP_SIMD_BEST") {
            assert_eq!(best(Level::Avx512).name(), expected);
        }
    }

    #[test]
    fn a_level_is_known_by_its_name() {
        for level in LEVELS {
            assert_eq!(named(level.name()), Some(level));
        }
        assert_eq!((named("sse9"), named("")), (None, None));
        assert!(set_level("sse9").unwrap_err().ends_with("scalar, neon, avx2, avx512-base, avx512"));
    }

    #[test]
    fn instead_of_a_level_that_is_not_here_the_best_below_it_is_used() {
        for asked in LEVELS {
            let level = best(asked);
            assert!(level.is_here() && level <= asked);
            assert!(!LEVELS.into_iter().any(|other| other > level && other <= asked && other.is_here()));
        }
        let here = if cfg!(target_arch = "aarch64") { "neon" } else { "scalar" };
        assert_eq!(best(Level::Neon).name(), here);
    }

    #[test]
    fn every_level_that_is_here_can_be_in_force() {
        at_every_level(|name| assert_eq!(level().name(), name));
    }
}
