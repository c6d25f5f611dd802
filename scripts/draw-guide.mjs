// Makes the table of docs/providers.md from the built-in providers, and assets/guide/providers.html from
// docs/providers.md: the page that the tray opens when a login has no OAuth client. It is one file without
// scripts, for a browser that opens it from the disk. Needs a build.
//   node scripts/draw-guide.mjs            writes both
//   node scripts/draw-guide.mjs --print    writes it to standard output, for the test that compares
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Marked } from 'marked'
import { format, resolveConfig } from 'prettier'
import { providerTemplates } from '../dist/daemon/oauth/providers/templates.js'

const root = new URL('../', import.meta.url)
const read = (path) => readFileSync(new URL(path, root), 'utf8')

/** Makes anchors as GitHub does: `When a login has expired` is `#when-a-login-has-expired`. */
const anchorOf = (text) =>
  text
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    table(token) {
      // A wide table scrolls inside the page.
      const cells = (row, tag) =>
        row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')
      // The first column is the name of a section.
      const rows = token.rows
        .map(([first, ...rest]) => {
          const to = `<td><a href="#${anchorOf(first.text)}">${first.text}</a></td>`
          return `<tr>${to}${cells(rest, 'td')}</tr>`
        })
        .join('')
      return `<div class="table"><table><thead><tr>${cells(token.header, 'th')}</tr></thead><tbody>${rows}</tbody></table></div>\n`
    },
  },
})

const secrets = {
  required: 'yes',
  optional: 'no, if the app is public',
  none: 'no',
}

const redirectOf = ({ redirectHost = '127.0.0.1', app }) => {
  if (app.redirect === 'none') return 'none'
  const port = app.redirect === 'exact' ? ':53174' : ''
  return `\`http://${redirectHost}${port}/callback\``
}

/** Without the part that all scopes of a provider begin with. */
const scopesOf = ({ scopes }) =>
  scopes.length === 0
    ? 'none'
    : scopes.map((scope) => `\`${scope.replace(/^.*\/auth\//, '')}\``).join(', ')

const table = [
  '| | kind of client | redirect URI to register | secret | default scopes |',
  '| --- | --- | --- | --- | --- |',
  ...Object.values(providerTemplates).map((template) =>
    [
      '',
      template.title,
      template.app.kind,
      redirectOf(template),
      secrets[template.app.secret],
      scopesOf(template),
      '',
    ]
      .join(' | ')
      .trim(),
  ),
].join('\n')

const source = new URL('docs/providers.md', root)
const text = await format(
  read('docs/providers.md').replace(
    /(?<=templates\.ts -->\n\n).*?(?=\n\n<!-- end of the table -->)/s,
    () => table,
  ),
  { ...(await resolveConfig(fileURLToPath(source))), parser: 'markdown' },
)

const html = read('assets/guide/frame.html')
  .replace(
    '{{style}}',
    () =>
      `<style>\n${read('assets/page/tokens.css')}${read('assets/page/base.css')}${read('assets/guide/page.css')}</style>`,
  )
  .replace('{{text}}', () => marked.parse(text.replaceAll(/<!--.*?-->\n/g, '')))
const target = new URL('assets/guide/providers.html', root)
const style = await resolveConfig(fileURLToPath(target))
const page = await format(html, { ...style, parser: 'html' })

if (process.argv.includes('--print')) process.stdout.write(page)
else {
  writeFileSync(source, text)
  writeFileSync(target, page)
}
