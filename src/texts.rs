#![forbid(unsafe_code)]
//! Texts set aside for a second look: in memory while they are few, then in a file.

use std::fs::File;
use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use crate::memory;

pub struct TextStore {
    /// Where each text begins, and where the last one ends.
    offsets: Vec<u64>,
    memory: Vec<u8>,
    limit: usize,
    file: Option<File>,
    path: std::path::PathBuf,
    /// Bytes that are in the file, or on the way there; the rest is in memory.
    written: u64,
    /// Who writes the last of them, and gives back the memory.
    writer: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl TextStore {
    /// Keep at most about *limit* bytes in memory; the rest goes to a new file at *path*.
    pub fn new(path: std::path::PathBuf, limit: usize) -> TextStore {
        TextStore { offsets: vec![0], memory: Vec::new(), limit, file: None, path, written: 0, writer: None }
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The bytes of all texts.
    pub fn bytes(&self) -> u64 {
        self.written + self.memory.len() as u64
    }

    pub fn push(&mut self, text: &[u8]) -> io::Result<()> {
        memory::more_room(&mut self.offsets, 1);
        memory::append(&mut self.memory, text);
        self.offsets.push(self.bytes());
        if self.memory.len() > self.limit / 2 {
            self.write()?;
        }
        Ok(())
    }

    /// Begin to write what is in memory, while more comes.
    fn write(&mut self) -> io::Result<()> {
        let room = self.finish()?;
        let mut file = match &self.file {
            Some(file) => file.try_clone()?,
            None => {
                let mut options = File::options();
                let file = options.read(true).write(true).create_new(true).open(&self.path)?;
                self.file.insert(file).try_clone()?
            }
        };
        let mut texts = std::mem::replace(&mut self.memory, room);
        self.written += texts.len() as u64;
        let writer = thread::Builder::new().spawn(move || {
            file.write_all(&texts)?;
            texts.clear();
            Ok(texts)
        });
        self.writer = Some(writer?);
        Ok(())
    }

    /// Wait until all that was begun is written; an empty vector, with room if something was.
    pub fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self.writer.take() {
            Some(writer) => writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer of texts failed"))),
            None => Ok(Vec::new()),
        }
    }

    /// The bytes of the text with that number.
    pub fn length(&self, number: usize) -> usize {
        (self.offsets[number + 1] - self.offsets[number]) as usize
    }

    /// Fill *out* with the text that has that number, after `finish`.
    pub fn read(&self, number: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let (start, length) = (self.offsets[number], self.length(number));
        memory::resize(out, length, 0);
        if start >= self.written {
            let from = (start - self.written) as usize;
            out.copy_from_slice(&self.memory[from..from + length]);
        } else if let Some(file) = &self.file {
            read_at(file, out, start)?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let count = std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], at + done as u64)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_memory_and_from_the_file() {
        let path = std::env::temp_dir().join(format!("neardup-texts-{}", std::process::id()));
        let mut store = TextStore::new(path.clone(), 10);
        let texts = ["short", "", "a longer one", "x", "漢字"];
        for text in texts {
            store.push(text.as_bytes()).unwrap();
        }
        store.finish().unwrap();
        let mut read = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            store.read(number, &mut read).unwrap();
            assert_eq!(read, text.as_bytes());
        }
        assert_eq!(store.len(), 5);
        std::fs::remove_file(path).unwrap();
    }
}
