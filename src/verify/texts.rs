#![forbid(unsafe_code)]
//! Texts set aside for a second look: in memory while they are few, then in a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use crate::system::memory;

pub struct TextStore {
    /// Where each text begins, and where the last one ends.
    offsets: Vec<u64>,
    memory: Vec<u8>,
    limit: usize,
    file: Option<File>,
    path: Option<PathBuf>,
    /// Bytes that are in the file, or on the way there; the rest is in memory.
    written: u64,
    /// Who writes the last of them, and gives back the memory.
    writer: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl TextStore {
    /// Keep at most about *limit* bytes in memory; the rest goes to a new file at *path*, if there is one.
    pub fn new(path: Option<PathBuf>, limit: usize) -> TextStore {
        TextStore { offsets: vec![0], memory: Vec::new(), limit, file: None, path, written: 0, writer: None }
    }

    /// A store of the texts with these *numbers*, in their order, in place of this one.
    pub fn only(&mut self, numbers: impl Iterator<Item = usize>) -> io::Result<()> {
        self.finish()?;
        // Its file has another name, as long as there are two.
        let path =
            self.path.as_ref().map(|path| path.with_extension(if path.extension().is_some() { "" } else { "2" }));
        let mut kept = TextStore::new(path, self.limit);
        let mut text = Vec::new();
        for number in numbers {
            self.read(number, &mut text)?;
            kept.push(&text)?;
        }
        let old = std::mem::replace(self, kept);
        match (old.file, old.path) {
            (Some(_), Some(path)) => std::fs::remove_file(path),
            _ => Ok(()),
        }
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
        match &self.path {
            Some(path) if self.memory.len() > self.limit / 2 => self.write(path.clone()),
            _ => Ok(()),
        }
    }

    /// Begin to write what is in memory, while more comes.
    fn write(&mut self, path: PathBuf) -> io::Result<()> {
        let room = self.finish()?;
        let mut file = match &self.file {
            Some(file) => file.try_clone()?,
            None => {
                let mut options = File::options();
                let file = options.read(true).write(true).create_new(true).open(path)?;
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

    fn path_of(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("neardup-texts-{name}-{}", std::process::id()))
    }

    fn all(store: &mut TextStore) -> Vec<String> {
        store.finish().unwrap();
        let mut text = Vec::new();
        let read = |number| {
            store.read(number, &mut text).unwrap();
            String::from_utf8(text.clone()).unwrap()
        };
        (0..store.len()).map(read).collect()
    }

    #[test]
    fn texts_come_back_from_memory_and_from_the_file() {
        let texts = ["short", "", "a longer one", "x", "漢字"];
        for path in [Some(path_of("back")), None] {
            let mut store = TextStore::new(path.clone(), 10);
            for text in texts {
                store.push(text.as_bytes()).unwrap();
            }
            assert_eq!(all(&mut store), texts);
            path.map(std::fs::remove_file).transpose().unwrap();
        }
    }

    #[test]
    fn only_some_texts_are_kept_and_the_old_file_goes() {
        let path = path_of("only");
        let mut store = TextStore::new(Some(path.clone()), 10);
        for text in ["one two three", "four five six", "seven eight nine"] {
            store.push(text.as_bytes()).unwrap();
        }
        store.only([2, 0].into_iter()).unwrap();
        assert_eq!(all(&mut store), ["seven eight nine", "one two three"]);
        assert!(!path.exists());
        store.only([1].into_iter()).unwrap();
        assert_eq!(all(&mut store), ["one two three"]);
        std::fs::remove_file(path).unwrap();
    }
}
