return {
  name: 'top-words',
  inject: ['tools', 'stopwords'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'top_words',
      description: 'The five most frequent words of a text that mean something.',
      parameters: { text: { type: 'string', required: true } },
      output: {
        schema: { type: 'array', items: { type: 'string' } },
        render: (args, words) => [{ type: 'text', text: words.join(', ') }],
      },
      execute({ text }) {
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
