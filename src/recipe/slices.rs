#![forbid(unsafe_code)]
//! Sixty-four sums at once, in slices: digit d of all of them is one row of bits.
//!
//! To count how many words have each bit, a word is added as it is, by a full adder that works on all of its
//! bits; no bit is ever spread into its own number:
//!
//! ```text
//! carry = (sum & a) | ((sum ^ a) & b);  sum = sum ^ a ^ b        five operations for 64 bits of two words
//! two words into digit 0 give one carry, two carries into digit 1 give one, and so on
//! ```
//!
//! A row has four lanes, each of which counts its own words: that is a vector of AVX2, or two of the baseline,
//! without any instruction that not every CPU has.

/// Lanes of a row.
pub const LANES: usize = 4;

/// One word for each lane.
pub type Row = [u64; LANES];

/// Rows that are added together, before anything is carried further.
pub const BLOCK: usize = 16;

pub type Block = [Row; BLOCK];

/// For each of 64 bits a sum below 2^`DIGITS`, shared among the lanes.
#[derive(Clone)]
pub struct Slices<const DIGITS: usize> {
    digits: [Row; DIGITS],
    /// Digits from here on are 0.
    top: usize,
}

/// Sums of weights: fewer than 2^32 features, each of a weight below 2^16.
pub type Sums = Slices<48>;

impl<const DIGITS: usize> Default for Slices<DIGITS> {
    fn default() -> Self {
        Slices { digits: [[0; LANES]; DIGITS], top: 0 }
    }
}

/// Add *a* and *b* to a digit; what is carried to the next one.
#[inline(always)]
fn add(sum: &mut Row, a: Row, b: Row) -> Row {
    let mut carry = [0; LANES];
    for lane in 0..LANES {
        let either = sum[lane] ^ a[lane];
        carry[lane] = (sum[lane] & a[lane]) | (either & b[lane]);
        sum[lane] = either ^ b[lane];
    }
    carry
}

/// Add *row* to a digit; it becomes what is carried to the next one.
#[inline(always)]
fn carry_into(digit: &mut Row, row: &mut Row) {
    for lane in 0..LANES {
        (digit[lane], row[lane]) = (digit[lane] ^ row[lane], digit[lane] & row[lane]);
    }
}

/// The lowest digits, while many rows are added to them.
type Low = [Row; 4];

#[inline(always)]
fn add_two(low: &mut Low, rows: &[Row]) -> Row {
    add(&mut low[0], rows[0], rows[1])
}

#[inline(always)]
fn add_four(low: &mut Low, rows: &[Row]) -> Row {
    let (a, b) = (add_two(low, &rows[..2]), add_two(low, &rows[2..]));
    add(&mut low[1], a, b)
}

#[inline(always)]
fn add_eight(low: &mut Low, rows: &[Row]) -> Row {
    let (a, b) = (add_four(low, &rows[..4]), add_four(low, &rows[4..]));
    add(&mut low[2], a, b)
}

#[inline(always)]
fn add_sixteen(low: &mut Low, rows: &Block) -> Row {
    let (a, b) = (add_eight(low, &rows[..8]), add_eight(low, &rows[8..]));
    add(&mut low[3], a, b)
}

impl<const DIGITS: usize> Slices<DIGITS> {
    /// Make all sums 0.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.digits[..self.top].fill([0; LANES]);
        self.top = 0;
    }

    /// Add a row to digit *at*, and what is carried to those above.
    #[inline(always)]
    fn carry(&mut self, at: usize, mut row: Row) {
        // Through all digits that there are: where nothing is carried any more could not be foretold.
        let known = at..self.top.max(at);
        self.top = known.end;
        for digit in &mut self.digits[known] {
            carry_into(digit, &mut row);
        }
        while row.iter().fold(0, |all, lane| all | lane) != 0 {
            carry_into(&mut self.digits[self.top], &mut row);
            self.top += 1;
        }
    }

    /// Add two rows to digit *at*.
    #[inline(always)]
    pub fn add_two(&mut self, at: usize, [a, b]: [Row; 2]) {
        let row = add(&mut self.digits[at], a, b);
        self.top = self.top.max(at + 1);
        self.carry(at + 1, row);
    }

    /// The lowest digits, to which rows can be added.
    #[inline(always)]
    fn low(&self) -> Low {
        [self.digits[0], self.digits[1], self.digits[2], self.digits[3]]
    }

    /// What has become of them, and what they carry to digit *at*.
    #[inline(always)]
    fn set_low(&mut self, low: Low, at: usize, row: Row) {
        self.digits[..4].copy_from_slice(&low);
        self.top = self.top.max(at);
        self.carry(at, row);
    }

    /// Count the bits of a block of words.
    #[inline(always)]
    pub fn count_block(&mut self, block: &Block) {
        let mut low = self.low();
        let row = add_sixteen(&mut low, block);
        self.set_low(low, 4, row);
    }

    /// Count the bits of all *words*.
    #[inline(always)]
    pub fn count(&mut self, words: &[u64]) {
        let (rows, rest) = words.as_chunks::<LANES>();
        let (blocks, mut rows) = rows.as_chunks::<BLOCK>();
        for block in blocks {
            self.count_block(block);
        }
        // Loops and no closures: one that is not inlined is not compiled for the instructions of its caller.
        if let Some((eight, more)) = rows.split_at_checked(8) {
            let mut low = self.low();
            let row = add_eight(&mut low, eight);
            self.set_low(low, 3, row);
            rows = more;
        }
        if let Some((four, more)) = rows.split_at_checked(4) {
            let mut low = self.low();
            let row = add_four(&mut low, four);
            self.set_low(low, 2, row);
            rows = more;
        }
        if let Some((two, more)) = rows.split_at_checked(2) {
            self.add_two(0, [two[0], two[1]]);
            rows = more;
        }
        let mut last = [0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        match rows {
            [row] => self.add_two(0, [*row, last]),
            _ => self.carry(0, last),
        }
    }

    /// Count the bits of the *chosen* ones of *rows*, each 2^*digit* times.
    #[inline(always)]
    pub fn count_chosen(&mut self, digit: usize, rows: &[Row], chosen: &[[u16; BLOCK]]) {
        let mut low = [self.digits[digit], self.digits[digit + 1], self.digits[digit + 2], self.digits[digit + 3]];
        for chosen in chosen {
            let mut block = [[0; LANES]; BLOCK];
            for (row, number) in block.iter_mut().zip(chosen) {
                *row = rows[usize::from(*number)];
            }
            let row = add_sixteen(&mut low, &block);
            self.carry(digit + 4, row);
        }
        self.digits[digit..digit + 4].copy_from_slice(&low);
        self.top = self.top.max(digit + 4);
    }

    /// Bit i where the sum of bit i, over all lanes, is at least *least*.
    #[inline(always)]
    pub fn at_least(&self, least: u64) -> u64 {
        let mut sums = [0; u64::BITS as usize];
        for lane in 0..LANES {
            let mut carry = 0;
            for (at, sum) in sums[..(self.top + 2).min(64)].iter_mut().enumerate() {
                let digit = self.digits.get(at).map_or(0, |row| row[lane]);
                let either = *sum ^ digit;
                (*sum, carry) = (either ^ carry, (*sum & digit) | (either & carry));
            }
        }
        let (mut more, mut same) = (0, u64::MAX);
        for (at, sum) in sums.iter().enumerate().rev() {
            let wanted = (least >> at & 1).wrapping_neg();
            more |= same & sum & !wanted;
            same &= !(sum ^ wanted);
        }
        more | same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix::finish;

    fn ones(words: &[u64]) -> [u64; 64] {
        std::array::from_fn(|bit| words.iter().filter(|word| **word >> bit & 1 == 1).count() as u64)
    }

    fn check(slices: &Slices<48>, sums: &[u64; 64]) {
        for least in sums.iter().flat_map(|sum| [*sum, sum + 1]).chain([0, 1, u64::MAX]) {
            let wanted = sums.iter().enumerate().fold(0, |word, (bit, sum)| word | u64::from(*sum >= least) << bit);
            assert_eq!(slices.at_least(least), wanted, "at least {least}");
        }
    }

    #[test]
    fn counts_are_those_of_counting_bit_by_bit() {
        for length in (0..140).chain([255, 256, 257, 1000, 4099]) {
            // Bit 0 is always set, bit 1 never, the others now and then.
            let words: Vec<u64> = (0..length).map(|n| (finish(n) | 1) & !2).collect();
            let mut slices = Sums::default();
            slices.count(&words);
            check(&slices, &ones(&words));
            slices.clear();
            check(&slices, &[0; 64]);
        }
    }

    #[test]
    fn counts_go_on_where_they_stopped() {
        let words: Vec<u64> = (0..1000).map(finish).collect();
        let mut slices = Sums::default();
        words.chunks(37).for_each(|some| slices.count(some));
        check(&slices, &ones(&words));
    }

    #[test]
    fn chosen_rows_are_counted_as_often_as_their_digit_says() {
        let (mut slices, mut sums) = (Sums::default(), [0; 64]);
        let rows: Vec<Row> = (0..100).map(|n| std::array::from_fn(|lane| finish(n * 7 + lane as u64))).collect();
        for (digit, blocks) in [(0u64, 1), (3, 5), (1, 0), (16, 2), (5, 9)] {
            let number = |n| (finish(n + digit) % 100) as u16;
            let chosen: Vec<[u16; BLOCK]> = (0..blocks).map(|n| [0; BLOCK].map(|_| number(n))).collect();
            slices.count_chosen(digit as usize, &rows, &chosen);
            let words: Vec<u64> = chosen.iter().flatten().flat_map(|number| rows[usize::from(*number)]).collect();
            sums.iter_mut().zip(ones(&words)).for_each(|(sum, ones)| *sum += ones << digit);
            check(&slices, &sums);
        }
    }
}
