'use strict';
// Measures the page's own load and, at #all, what else browsers do over a connection. Each result
// is posted to /report/NAME.

const report = (name, value) =>
  fetch('/report/' + name, { method: 'POST', body: JSON.stringify(value) });
const event = (target, name) => new Promise((resolve, reject) => {
  target.addEventListener(name, resolve, { once: true });
  target.addEventListener('error', () => reject(new Error('error before ' + name)), { once: true });
});
// FNV-1a of 32 bits; the server computes the same.
const hash = (octets) => {
  let value = 0x811c9dc5;
  for (const octet of octets) value = Math.imul(value ^ octet, 0x01000193);
  return value >>> 0;
};
const content = (length) => {
  const octets = new Uint8Array(length);
  for (let i = 0; i < length; i++) octets[i] = i * 31 + (i >> 8);
  return octets;
};

// Messages in both directions; each is returned by the server.
const websocket = async () => {
  const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
  await event(socket, 'open');
  for (let number = 0; number < 10; number++) {
    const text = 'message ' + number;
    const answer = event(socket, 'message');
    socket.send(text);
    if ((await answer).data !== text) return { ok: false };
  }
  const closed = event(socket, 'close');
  socket.close(1000);
  return { ok: (await closed).code === 1000 };
};

// Server-sent events, numbered and a fifth of a second apart.
const events = async () => {
  const source = new EventSource('/events');
  for (let number = 0; number < 10; number++) {
    if ((await event(source, 'message')).data !== String(number)) return { ok: false };
  }
  source.close();
  return { ok: true };
};

// A medium that is played from its end: the browser asks for a range.
const media = async () => {
  const audio = new Audio('/sound.wav');
  audio.preload = 'metadata';
  await event(audio, 'loadedmetadata');
  const seeked = event(audio, 'seeked');
  audio.currentTime = audio.duration - 1;
  await seeked;
  return { ok: audio.currentTime > audio.duration - 2 };
};

const upload = async () => {
  const body = content(UPLOAD);
  const response = await fetch('/upload', { method: 'POST', body });
  const received = await response.json();
  return { ok: received.octets === UPLOAD && received.hash === hash(body) };
};

// The link is cut while this runs.
const download = async () => {
  const response = await fetch('/large?' + Math.random());
  const octets = new Uint8Array(await response.arrayBuffer());
  return { ok: octets.length === LARGE && hash(octets) === hash(content(LARGE)) };
};

const timed = async (name, check) => {
  const from = performance.now();
  let result;
  try {
    result = await check();
  } catch (error) {
    result = { ok: false, error: String(error) };
  }
  await report(name, { seconds: (performance.now() - from) / 1000, ...result });
};

addEventListener('load', () => setTimeout(async () => {
  const [page] = performance.getEntriesByType('navigation');
  const broken = [...document.images].filter((image) => !image.naturalWidth).length;
  await report('load', {
    ok: broken === 0 && performance.getEntriesByType('resource').length === OBJECTS,
    seconds: page.loadEventEnd / 1000,
    protocol: page.nextHopProtocol,
  });
  if (location.hash !== '#all') return;
  await timed('websocket', websocket);
  await timed('events', events);
  await timed('media', media);
  await timed('upload', upload);
  await report('cut', {});
  await timed('download', download);
}, 0));
