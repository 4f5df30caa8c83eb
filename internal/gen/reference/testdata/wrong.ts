const wrong: dsh.Plugin = {
  inject: ['fs'],
  async apply(ctx) {
    ctx.fs.readTexts('a');
    await ctx.fs.readText(5);
    ctx.on('tools/pre-execute', () => 'nope');
    harness.registerTool(ctx, { name: 'x' });
  },
};
