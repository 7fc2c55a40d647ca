/* Streams over XSTP for C. Link with libbentpipe.a or libbentpipe.so:
 *
 *   cc example.c -I include -L target/release -lbentpipe -lpthread -ldl -lm
 *
 * Every function may be called from any thread; one stream may be read by one thread and written by
 * another at the same time. A function that fails returns NULL or -1; bp_error() then returns the
 * reason, for the same thread, until its next failure.
 */
#ifndef BENTPIPE_H
#define BENTPIPE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bp_endpoint bp_endpoint;
typedef struct bp_stream bp_stream;

/* Writes a new private key and its public key, as text of 44 characters and a NUL. */
void bp_generate_key(char private_key[45], char public_key[45]);

/* A client of the server at ADDRESS:PORT with this public key. It returns without waiting: a
 * session is started in the background, and again whenever one ends. */
bp_endpoint *bp_connect(const char *address, const char *private_key, const char *server_key);

/* A server at ADDRESS:PORT for clients with these `count` public keys. */
bp_endpoint *bp_listen(const char *address, const char *private_key,
                       const char *const *client_keys, size_t count);

/* The port of an endpoint's socket. */
uint16_t bp_port(const bp_endpoint *endpoint);

/* Opens a stream of a client. At a hub gateway, `host` and `port` are those of the server to which
 * it leads; another server gets them as they are. */
bp_stream *bp_open(bp_endpoint *endpoint, const char *host, uint16_t port);

/* Waits up to `milliseconds` (negative: without a limit) for a stream that a client opens. */
bp_stream *bp_accept(bp_endpoint *endpoint, int64_t milliseconds);

/* Reads 1 to `len` octets, and waits for them; 0 at the end of the stream. */
ssize_t bp_read(bp_stream *stream, void *buffer, size_t len);

/* Writes 1 to `len` octets, and waits for room. */
ssize_t bp_write(bp_stream *stream, const void *data, size_t len);

/* Finishes this side of the stream; the peer can continue to send. Returns 0. */
int bp_finish(bp_stream *stream);

/* Frees a stream; written data is delivered. NULL is ignored. */
void bp_stream_free(bp_stream *stream);

/* Frees an endpoint, after its streams; waits up to `milliseconds` for the delivery of all data.
 * Returns 0 if that was possible. NULL is ignored. */
int bp_endpoint_free(bp_endpoint *endpoint, int64_t milliseconds);

/* The reason of this thread's last failure; never NULL. */
const char *bp_error(void);

#ifdef __cplusplus
}
#endif

#endif
