return {
  name: 'outline',
  inject: ['tools', 'fs'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'outline',
      description: 'Count the words of a Markdown file and list its headings.',
      parameters: { path: { type: 'string', required: true } },
      output: {
        schema: {
          words: { type: 'integer', required: true },
          headings: { type: 'array', items: { type: 'string' }, required: true },
        },
        render(args, { words, headings }) {
          const text = `${words} words, ${headings.length} headings: ${headings.join(' · ')}`
          return [{ type: 'text', text }]
        },
      },
      async execute({ path }) {
        const text = await ctx.fs.readText(path)
        const prose = text.replace(/^```[^]*?^```/gm, '')
        return {
          words: prose.split(/\s+/).filter(Boolean).length,
          headings: [...prose.matchAll(/^#+ (.+)$/gm)].map((m) => m[1]),
        }
      },
    }))
  },
}
