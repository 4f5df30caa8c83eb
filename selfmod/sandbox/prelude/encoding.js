// A part: UTF-8 and base64: TextEncoder, TextDecoder, btoa, atob.

const {
  NativeRangeError, NativeString, NativeUint16Array, NativeUint8Array, apply, bufferBytes, charCodeAt, classOf,
  cut, fromBase64, fromCharCode, isObject, kindOf, min, quoteName, setProto, stringSlice, toBase64, typeError,
  typedBuffer, typedBytes, typedLength, typedOffset, typedSet, typedTag, viewBuffer, viewBytes, viewOffset,
} = core;

// encodeUTF8 returns the bytes of a string; a lone surrogate becomes U+FFFD.
const encodeUTF8 = (s) => {
  const n = s.length;
  let bytes = new NativeUint8Array(n);
  let at = 0;
  let i = 0;
  for (; i < n; i++) {
    const c = charCodeAt(s, i);
    if (c > 127) {
      break;
    }
    bytes[at++] = c;
  }
  if (i === n) {
    return bytes;
  }
  const wide = new NativeUint8Array(at + (n - i) * 3);
  typedSet(wide, bytes);
  bytes = wide;
  for (; i < n; i++) {
    let c = charCodeAt(s, i);
    if (c < 0x80) {
      bytes[at++] = c;
      continue;
    }
    if (c >= 0xd800 && c < 0xe000) {
      const low = i + 1 < n ? charCodeAt(s, i + 1) : 0;
      if (c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        i++;
      } else {
        c = 0xfffd;
      }
    }
    if (c < 0x800) {
      bytes[at++] = 0xc0 | (c >> 6);
    } else {
      if (c < 0x10000) {
        bytes[at++] = 0xe0 | (c >> 12);
      } else {
        bytes[at++] = 0xf0 | (c >> 18);
        bytes[at++] = 0x80 | ((c >> 12) & 63);
      }
      bytes[at++] = 0x80 | ((c >> 6) & 63);
    }
    bytes[at++] = 0x80 | (c & 63);
  }
  return shrink(bytes, at);
};

// shrink copies the first n bytes without asking the patchable species.
const shrink = (bytes, n) => {
  const exact = new NativeUint8Array(n);
  typedSet(exact, new NativeUint8Array(typedBuffer(bytes), 0, n));
  return exact;
};

const CHUNK = 4096;

// unitsToString makes a string of the first n code units.
const unitsToString = (units, n) => {
  let text = '';
  for (let from = 0; from < n; from += CHUNK) {
    const part = [];
    const to = min(from + CHUNK, n);
    setProto(part, null);
    for (let i = from; i < to; i++) {
      part[i - from] = units[i];
    }
    text += apply(fromCharCode, undefined, part);
  }
  return text;
};

// decodeUTF8 follows the WHATWG rules: each maximal bad part is one U+FFFD, or
// an error when fatal. With more it stops before an unfinished sequence at the
// end. It returns { text, used }.
const decodeUTF8 = (bytes, fatal, more) => {
  const n = typedLength(bytes);
  const units = new NativeUint16Array(n + 1);
  let at = 0;
  let i = 0;
  while (i < n) {
    const b = bytes[i];
    if (b < 0x80) {
      units[at++] = b;
      i++;
      continue;
    }
    let need = b >= 0xc2 && b <= 0xdf ? 1 : b >= 0xe0 && b <= 0xef ? 2 : b >= 0xf0 && b <= 0xf4 ? 3 : 0;
    let code = need === 1 ? b & 31 : need === 2 ? b & 15 : b & 7;
    let low = b === 0xe0 ? 0xa0 : b === 0xf0 ? 0x90 : 0x80;
    let high = b === 0xed ? 0x9f : b === 0xf4 ? 0x8f : 0xbf;
    let j = i + 1;
    const total = need;
    while (need > 0 && j < n && bytes[j] >= low && bytes[j] <= high) {
      code = (code << 6) | (bytes[j] & 63);
      low = 0x80;
      high = 0xbf;
      j++;
      need--;
    }
    if (total > 0 && need === 0) {
      if (code >= 0x10000) {
        units[at++] = 0xd800 + ((code - 0x10000) >> 10);
        units[at++] = 0xdc00 + ((code - 0x10000) & 1023);
      } else {
        units[at++] = code;
      }
    } else if (more && total > 0 && j === n) {
      break;
    } else if (fatal) {
      throw typeError('TextDecoder: the bytes are not valid UTF-8 (at byte ' + i + ')');
    } else {
      units[at++] = 0xfffd;
    }
    i = j;
  }
  return { __proto__: null, text: unitsToString(units, at), used: i };
};

// bytesOf is a Uint8Array over the same memory as a buffer or a view of one.
const bytesOf = (v, what) => {
  if (isObject(v)) {
    if (typedTag(v) !== undefined) {
      return new NativeUint8Array(typedBuffer(v), typedOffset(v), typedBytes(v));
    }
    const tag = classOf(v);
    try {
      if (tag === '[object DataView]') {
        return new NativeUint8Array(viewBuffer(v), viewOffset(v), viewBytes(v));
      }
      if (tag === '[object ArrayBuffer]') {
        return new NativeUint8Array(v, 0, bufferBytes(v));
      }
    } catch {
      // Only its tag is a buffer's.
    }
  }
  throw typeError(what + ' takes an ArrayBuffer or a view of one, got ' + kindOf(v));
};

class TextEncoder {
  get encoding() {
    return 'utf-8';
  }
  encode(input = '') {
    return encodeUTF8(NativeString(input));
  }
  encodeInto(source, destination) {
    const text = NativeString(source);
    let read = 0;
    let written = 0;
    const room = typedLength(destination);
    while (read < text.length) {
      const c = charCodeAt(text, read);
      const pair = c >= 0xd800 && c < 0xdc00 && read + 1 < text.length ? 2 : 1;
      const bytes = encodeUTF8(stringSlice(text, read, read + pair));
      const size = typedLength(bytes);
      const step = pair === 2 && size !== 4 ? 1 : pair;
      const n = step === pair ? size : 3;
      if (written + n > room) {
        break;
      }
      for (let i = 0; i < n; i++) {
        destination[written + i] = bytes[i];
      }
      read += step;
      written += n;
    }
    return { read, written };
  }
}

const utf8Labels = ['utf-8', 'utf8', 'unicode-1-1-utf-8', 'UTF-8', 'UTF8'];

class TextDecoder {
  #fatal = false;
  #keepBOM = false;
  #rest = null;
  #started = false;
  constructor(label = 'utf-8', options = undefined) {
    const name = NativeString(label);
    let known = false;
    for (let i = 0; i < utf8Labels.length; i++) {
      known = known || utf8Labels[i] === name;
    }
    if (!known) {
      throw new NativeRangeError('TextDecoder knows utf-8 only here, not ' + quoteName(name, 60));
    }
    if (isObject(options)) {
      this.#fatal = !!options.fatal;
      this.#keepBOM = !!options.ignoreBOM;
    }
  }
  get encoding() {
    return 'utf-8';
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#keepBOM;
  }
  decode(input = undefined, options = undefined) {
    const more = isObject(options) && !!options.stream;
    let bytes = input === undefined ? new NativeUint8Array(0) : bytesOf(input, 'TextDecoder.decode');
    if (this.#rest !== null) {
      const kept = typedLength(this.#rest);
      const joined = new NativeUint8Array(kept + typedLength(bytes));
      typedSet(joined, this.#rest);
      typedSet(joined, bytes, kept);
      bytes = joined;
      this.#rest = null;
    }
    const { text, used } = decodeUTF8(bytes, this.#fatal, more);
    if (used < typedLength(bytes)) {
      const rest = new NativeUint8Array(typedLength(bytes) - used);
      for (let i = used; i < typedLength(bytes); i++) {
        rest[i - used] = bytes[i];
      }
      this.#rest = rest;
    }
    const bom = !this.#started && !this.#keepBOM && text.length > 0 && charCodeAt(text, 0) === 0xfeff;
    this.#started = more && (this.#started || text.length > 0);
    return bom ? stringSlice(text, 1) : text;
  }
}

// btoa and atob carry text as UTF-8, so that atob(btoa(s)) is s for every s.
const btoa = (text) => toBase64(encodeUTF8(NativeString(text)));
const atob = (data) => {
  const s = NativeString(data);
  let clean = '';
  for (let i = 0; i < s.length; i++) {
    const c = s[i];
    clean += c === '-' ? '+' : c === '_' ? '/' : c;
  }
  let bytes;
  try {
    bytes = fromBase64(clean, undefined);
  } catch {
    throw typeError('atob: the text is not base64');
  }
  return decodeUTF8(bytes, false, false).text;
};

return { TextEncoder, TextDecoder, btoa, atob };
