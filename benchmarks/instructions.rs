//! The program whose instructions benchmarks/instructions.py counts.

fn main() {
    _native::instructions::run();
}
