//! Which instruction set the kernels use, decided at run time.
//!
//! `NEARDUP_SIMD=scalar|avx2|avx512` asks for a level; a level that the machine does not
//! have is never used. All levels give the same answers, bit for bit.

use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Scalar,
    Avx2,
    Avx512,
}

const UNREAD: u8 = u8::MAX;
static CURRENT: AtomicU8 = AtomicU8::new(UNREAD);

/// The level in use: what the environment asks for, or the best the machine has.
pub fn level() -> Level {
    match CURRENT.load(Ordering::Relaxed) {
        0 => Level::Scalar,
        1 => Level::Avx2,
        2 => Level::Avx512,
        _ => {
            let asked = std::env::var("NEARDUP_SIMD").unwrap_or_default();
            let level = parse(&asked).unwrap_or(Level::Avx512).min(detected());
            CURRENT.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Use `name` from now on, or the best the machine has below it; "" asks the environment again.
pub fn set_level(name: &str) -> Result<(), String> {
    let value = match parse(name) {
        Some(level) => level.min(detected()) as u8,
        None if name.is_empty() => UNREAD,
        None => {
            return Err(format!("unknown SIMD level {name:?}; known: scalar, avx2, avx512"));
        }
    };
    CURRENT.store(value, Ordering::Relaxed);
    Ok(())
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

/// A token for the instructions of AVX2: code that has one may use the kernels for it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx2(());

/// The same for AVX-512 (with VBMI, VBMI2, BITALG and GFNI). Each kernel has a portable twin that gives the same bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx2> {
        (level() >= Level::Avx2).then_some(Avx2(()))
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

fn parse(name: &str) -> Option<Level> {
    match name {
        "scalar" => Some(Level::Scalar),
        "avx2" => Some(Level::Avx2),
        "avx512" => Some(Level::Avx512),
        _ => None,
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
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(target_arch = "x86_64")]
fn detected() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512bitalg")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("gfni");
    if avx512 {
        Level::Avx512
    } else if avx2 {
        Level::Avx2
    } else {
        Level::Scalar
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detected() -> Level {
    Level::Scalar
}
