#![forbid(unsafe_code)]
//! Planes: `planes[k][i]` is word `k` of fingerprint `i`. So one vector holds the same word of several fingerprints,
//! whatever their width.

/// Words of fingerprints, one slice for each word.
pub type Planes<'a, const W: usize> = [&'a [u64]; W];

/// The bits in which two fingerprints differ.
#[inline(always)]
pub fn distance<const W: usize>(left: &[u64; W], right: &[u64; W]) -> u32 {
    let mut sum = 0;
    for word in 0..W {
        sum += (left[word] ^ right[word]).count_ones();
    }
    sum
}

/// One fingerprint out of the planes.
#[inline(always)]
pub fn row<const W: usize>(planes: &Planes<'_, W>, index: usize) -> [u64; W] {
    let mut words = [0; W];
    for (word, plane) in words.iter_mut().zip(planes) {
        *word = plane[index];
    }
    words
}
