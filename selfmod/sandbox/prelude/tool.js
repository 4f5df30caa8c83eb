// Tools, as far as every machine knows them: the rest is a part, read when a
// plugin first defines one.

const defineTool = (options) => parts('tool').defineTool(options);
const registerTool = (ctx, tool) => parts('tool').registerTool(ctx, tool);

const isRecord = (v) => typeof v === 'object' && v !== null && !isArray(v);

// digits is a call id as JSON.
const digits = (id) => {
  for (let i = 0; i < id.length; i++) {
    const c = charCodeAt(id, i);
    if (c < 48 || c > 57) {
      return quote(id);
    }
  }
  return id === '' ? '""' : id;
};

// jsonOf is the text of a lossless value, named in the error by what it is.
const jsonOf = (what, v) => {
  let text;
  try {
    text = losslessText(v, 'value');
  } catch (e) {
    const l = lossy(e);
    if (l === undefined) {
      throw e;
    }
    throw typeError(what + ' must be lossless JSON data: ' + (l.path === 'value' ? 'it ' + l.what : messageOf(e)) + (l.hint === '' ? '' : ' — ' + l.hint));
  }
  if (text.length > LIMITS.result) {
    throw new NativeRangeError(what + ' is ' + text.length + ' bytes of JSON; the limit is ' + LIMITS.result);
  }
  return text;
};
