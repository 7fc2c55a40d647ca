//! The traits of tokio for streams. A stream can be polled by one task at a time.

use crate::Stream;
use crate::shared::Operation;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

impl Stream {
    fn poll(
        &self,
        context: &mut Context<'_>,
        operation: &mut Operation<'_>,
    ) -> Poll<io::Result<usize>> {
        let result = self.shared.change(&mut |state, now| {
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
        let read = self
            .poll(context, &mut |state, now| state.read(now, number, buffer.initialize_unfilled()));
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
        self.poll(context, &mut |state, now| state.write(now, number, data))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let number = self.number;
        self.poll(context, &mut |state, now| state.finish(now, number).map(|()| 0)).map_ok(|_| ())
    }
}
