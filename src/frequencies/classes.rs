#![forbid(unsafe_code)]
//! How common a feature is, as a class, and what a class weighs.

/// How common a feature is: up to the knee, and from here on above it, one more for each doubling; or no other
/// document has it.
pub const RARE: u8 = 0;
pub const ABOVE_KNEE: u8 = 1;
pub const ALONE: u8 = u8::MAX;
/// How much a feature of each class counts in a fingerprint: 32 if it is rare, 32 x 2^(-j/2) if it is j doublings
/// above the knee, 0 if nobody shares it.
pub const WEIGHTS: [u32; 256] = {
    let discount = [32, 23, 16, 11, 8, 6, 4, 3, 2, 1, 1, 1];
    let mut weights = [0; 256];
    weights[RARE as usize] = discount[0];
    let mut at = 0;
    while at < discount.len() {
        weights[ABOVE_KNEE as usize + at] = discount[at];
        at += 1;
    }
    weights
};

/// The same where the table does not know every document: a feature that it does not know is rare.
pub const OPEN_WEIGHTS: [u32; 256] = {
    let mut weights = WEIGHTS;
    weights[ALONE as usize] = WEIGHTS[RARE as usize];
    weights
};

/// The class of a feature that this many documents have.
pub fn class_of(count: u32, knee: u32) -> u8 {
    match count {
        0..2 => ALONE,
        count if count <= knee => RARE,
        count => ABOVE_KNEE + doublings(count, knee),
    }
}

/// The highest frequency at which a feature is rare, in a collection of this many documents.
pub fn knee_of(documents: u64) -> u32 {
    (documents.isqrt() / 3).clamp(16, u64::from(u32::MAX)) as u32
}

/// How often *frequency* is twice the knee: 0 below it.
pub fn doublings(frequency: u32, knee: u32) -> u8 {
    if frequency < knee {
        return 0;
    }
    let more = frequency.ilog2() - knee.ilog2();
    (more - u32::from(u64::from(knee) << more > u64::from(frequency))) as u8
}
