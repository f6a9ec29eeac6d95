//! Which instructions the kernels may use: found out once, forced by `NEARDUP_SIMD`.
//!
//! Every level gives the same bits; they differ in speed only.

use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Scalar = 1,
    Avx2 = 2,
    Avx512 = 3,
}

/// 0 stands for "not looked at yet".
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in force.
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Scalar,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let wanted = std::env::var("NEARDUP_SIMD").ok();
            let found = wanted.and_then(|name| parse(&name)).map_or_else(best, |level| level.min(best()));
            LEVEL.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

/// Force a level; a machine without it keeps its best one. The level then in force.
pub fn set_level(level: Level) -> Level {
    let level = level.min(best());
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

pub fn parse(name: &str) -> Option<Level> {
    match name {
        "scalar" => Some(Level::Scalar),
        "avx2" => Some(Level::Avx2),
        "avx512" => Some(Level::Avx512),
        _ => None,
    }
}

pub fn name(level: Level) -> &'static str {
    match level {
        Level::Scalar => "scalar",
        Level::Avx2 => "avx2",
        Level::Avx512 => "avx512",
    }
}

#[cfg(target_arch = "x86_64")]
fn best() -> Level {
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
    match (avx512, avx2) {
        (true, _) => Level::Avx512,
        (false, true) => Level::Avx2,
        _ => Level::Scalar,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Level {
    Level::Scalar
}
