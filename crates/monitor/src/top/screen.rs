//! The screen of a terminal, which is restored on every exit.

use super::frame::{Line, Style};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::queue;
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use std::io::{self, Write};
use std::time::Duration;
use units::Span;

/// An action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    Pause,
    Order,
    Down(usize),
    Up(usize),
    Other,
}

/// The screen; dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    out: io::Stdout,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let mut screen = Self { out: io::stdout() };
        queue!(screen.out, EnterAlternateScreen, Hide)?;
        screen.out.flush()?;
        Ok(screen)
    }

    /// Returns columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        (width.into(), height.into())
    }

    /// Draws a frame over the previous one without flicker.
    pub(crate) fn show(&mut self, lines: &[Line]) -> io::Result<()> {
        let (width, height) = self.size();
        let mut picture = Vec::with_capacity(16 * 1024);
        for (row, line) in lines.iter().enumerate().take(height) {
            queue!(picture, MoveTo(0, row as u16))?;
            let mut left = width;
            for (text, style) in line {
                let piece: String = text.chars().take(left).collect();
                left -= piece.chars().count();
                paint(&mut picture, &piece, *style)?;
            }
            queue!(picture, Clear(ClearType::UntilNewLine))?;
        }
        if lines.len() < height {
            queue!(picture, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
        }
        self.out.write_all(&picture)?;
        self.out.flush()
    }

    /// Returns the next action of the user within `patience`.
    pub(crate) fn key(&mut self, patience: Span) -> io::Result<Option<Key>> {
        if !event::poll(Duration::from_nanos(patience.as_nanos()))? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(meaning(key)),
            _ => Some(Key::Other),
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = queue!(self.out, Show, LeaveAlternateScreen);
        let _ = self.out.flush();
        let _ = terminal::disable_raw_mode();
    }
}

fn meaning(key: KeyEvent) -> Key {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char('p' | ' ') => Key::Pause,
        KeyCode::Char('o') => Key::Order,
        KeyCode::Down | KeyCode::Char('j') => Key::Down(1),
        KeyCode::Up | KeyCode::Char('k') => Key::Up(1),
        KeyCode::PageDown => Key::Down(20),
        KeyCode::PageUp => Key::Up(20),
        KeyCode::Home => Key::Up(usize::MAX),
        _ => Key::Other,
    }
}

fn paint(out: &mut Vec<u8>, text: &str, style: Style) -> io::Result<()> {
    match style {
        Style::Plain => return queue!(out, Print(text)),
        Style::Bold => queue!(out, SetAttribute(Attribute::Bold))?,
        Style::Dim => queue!(out, SetAttribute(Attribute::Dim))?,
        Style::Good => queue!(out, SetForegroundColor(Color::Green))?,
        Style::Bad => queue!(out, SetForegroundColor(Color::Red))?,
        Style::Heading => queue!(out, SetAttribute(Attribute::Reverse))?,
    }
    queue!(out, Print(text), SetAttribute(Attribute::Reset))
}
