const plugin: dsh.Plugin = {
  name: 'x',
  inject: ['fs', 'timer', 'bash', 'web', 'kv'],
  async apply(ctx) {
    ctx.on('tools/pre-execute', (exec, next) => exec.name === 'deploy' ? { kind: 'deny', reason: 'no' } : next());
    const off = ctx.on('tools/result', (exec, result) => { console.log(exec.name, result.isError, result.error?.code); });
    ctx.on('tools/change', (c) => { if (c.action === 'registered') console.log(c.name); }, { prepend: true });
    harness.registerTool(ctx, harness.defineTool<{ text: string }, { words: number }>({
      name: 'word_count', description: 'Count.',
      parameters: { text: { type: 'string', required: true, description: 'The text.' } },
      output: { schema: { type: 'object', properties: { words: { type: 'integer', required: true } } },
        render: (args, value) => [{ type: 'text', text: `${value.words} words` }] },
      async execute(args, exec) { exec.signal.throwIfAborted(); exec.progress({ done: 1 }); return { words: args.text.split(' ').length }; },
    }));
    const t: string = await ctx.fs.readText('a.txt');
    for await (const piece of ctx.fs.streamText('a.txt')) console.log(piece.length);
    const info = await ctx.fs.stat('a.txt');
    if (info) console.log(info.size);
    ctx.setTimeout(() => {}, 1000); await ctx.timeout(5);
    for await (const n of ctx.interval(1000)) { if (n > 3) break; }
    const d = ctx.debounce((s: string) => console.log(s), 50); d('x'); d.dispose();
    const r = await ctx.bash.run('ls', { timeoutMs: 1000 }); console.log(r.stdout.text, r.exitCode);
    const p = await ctx.bash.start({ command: 'sleep 1' }); await p.done; console.log(p.status === 'completed');
    const page = await ctx.web.fetch('https://example.com'); console.log(page.statusCode);
    ctx.web.registerSearchProvider('x', async (q) => ({ sources: [{ url: q.query }], truncated: false }));
    await ctx.kv.set('a', 1);
    const w = await ctx.fs.watch('.', (changes) => console.log(changes.length)); await w();
    ctx.effect(() => () => {});
    ctx.provide('greeter', { hello: (who: string) => 'hi ' + who });
    ctx.greeter.hello('x');
    await off();
    return () => {};
  },
};
const f: dsh.Plugin = (ctx) => ctx.on('tools/result', () => {});
function* g() { yield () => {}; }
const h: dsh.Plugin = { apply: () => g(), inject: { required: ['fs'], optional: ['web'] } };
