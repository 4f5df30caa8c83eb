return {
  name: 'top-words',
  inject: ['tools', 'fs', 'stopwords'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'top_words',
      description: 'The five most frequent words of a file that mean something.',
      parameters: { path: { type: 'string', required: true } },
      output: {
        schema: { type: 'array', items: { type: 'string' } },
        render: (args, words) => [{ type: 'text', text: words.join(', ') }],
      },
      async execute({ path }) {
        const text = await ctx.fs.readText(path)
        const counts = new Map()
        for (const word of text.toLowerCase().match(/[a-z]{3,}/g) ?? []) {
          counts.set(word, (counts.get(word) ?? 0) + 1)
        }
        return [...counts.keys()]
          .sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1))
          .filter((word) => !ctx.stopwords.has(word))
          .slice(0, 5)
      },
    }))
  },
}
