//! The traits of tokio for streams. A stream can be polled by one task at a time.

use crate::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

impl Stream {
    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        operation: impl FnOnce(&mut crate::state::State, units::Instant) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let result = self.shared.change(|state, now| {
            let result = operation(state, now);
            if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                state.set_waker(self.number, context.waker());
            }
            result
        });
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let number = self.number;
        let read =
            self.poll(context, |state, now| state.read(now, number, buffer.initialize_unfilled()));
        read.map_ok(|len| buffer.advance(len))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let number = self.number;
        self.poll(context, |state, now| state.write(now, number, data))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let number = self.number;
        self.poll(context, |state, _| state.finish(number))
    }
}
