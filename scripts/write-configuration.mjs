// Writes docs/configuration.md from the schemas of the configuration, so that the page has every key with
// the program's own description, config/schema likewise, and the table of senders in docs/webhooks.md from
// that of the verifier:
//   node scripts/write-configuration.mjs                   writes all
//   node scripts/write-configuration.mjs --print           writes docs/configuration.md to standard output, for the test
//   node scripts/write-configuration.mjs --print-webhooks  and this the table's page
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { toJsonSchema } from '../dist/shared/config/schema.js'
import { presetSchemes, schemeAliases } from '../dist/shared/signatures/presets.js'

const introduction = `# Configuration

<!-- made by scripts/write-configuration.mjs from the schemas: change those -->

Four files in \`config/\` of the home folder; \`doorward config path\` prints where. The first start writes a commented sample of each. A file needs only the settings that differ from a default.

\`\`\`sh
doorward config edit webhooks     # or agents, gateway, schedules, env: opens $VISUAL or $EDITOR, and checks what you saved
doorward config check             # every problem, as file:line:column
doorward config schema webhooks   # the JSON Schema, for other tools
\`\`\`

The daemon applies a change when you save the file. If the file is invalid, the old configuration stays in use, and \`doorward status\`, the log and the tray report it. Only \`server.host\`, \`server.port\`, \`server.public_port\`, \`queue.engine\` and \`queue.role\` need \`doorward daemon restart\`.

Durations are written \`500ms\`, \`30s\`, \`10m\`, \`2h\`, \`7d\`; sizes \`512kb\`, \`25mb\`, \`1gb\`; rates \`10/s\`, \`60/min\`, \`1000/h\`. Unknown keys are errors, with the nearest valid one.

These files never contain a secret, only the name of a variable. Its value is in \`.env\` of the home (mode 0600, \`NAME=value\`) or in the environment of the daemon, which has priority. \`DOORWARD_HOME\` sets another home, \`DOORWARD_PORT\` another port.

Which [account](tokens.md#several-accounts) the name of a provider means is no configuration: \`doorward oauth default\` writes it to \`accounts.json\` of the home, mode 0600.

The first line of each file, \`# yaml-language-server: $schema=./schema/….json\`, lets editors with the YAML language server complete keys, explain them and mark mistakes as you type: VS Code with the extension YAML, Neovim, Helix, Emacs, Zed and others.
`

/** A longer list of names has a page of its own. */
const maxNamed = 20

/** The kind of a value, in a word. */
const valueOf = (schema) => {
  if (schema.$ref) return 'map'
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum?.length > maxNamed) return '[name](webhooks.md#senders-and-secrets)'
  if (schema.enum) return schema.enum.map(code).join(', ')
  if (schema.anyOf) {
    const texts = [...new Set(schema.anyOf.map(valueOf))]
    return texts.join(', or ')
  }
  if (Array.isArray(schema.type)) return 'text'
  switch (schema.type) {
    case 'boolean':
      return '`true`, `false`'
    case 'integer':
      return `number${rangeOf(schema)}`
    case 'number':
      return 'number'
    case 'array':
      return `list of ${plural(valueOf(schema.items))}`
    case 'object':
      return 'map'
    default:
      return kindOfText(schema.pattern)
  }
}

const rangeOf = ({ minimum = -Infinity, maximum = Infinity }) =>
  minimum < 0 || maximum > 1e9 - 1
    ? ''
    : `, ${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`

const kindOfText = (pattern = '') => {
  if (pattern.includes('(ms|s|m|h|d)')) return 'duration'
  if (pattern.includes('(b|kb|mb|gb)')) return 'size'
  if (pattern.includes('(s|min|h)')) return 'rate'
  if (pattern === '^[A-Za-z_][A-Za-z0-9_]*$') return 'name of a variable'
  return 'text'
}

const plural = (text) =>
  text.replace(/^name of a variable$/, 'names of variables').replace(/^text$/, 'texts')

const code = (value) => (value === '' ? 'empty' : `\`${value}\``)

/** Splits `Larger bodies are refused. Default 25mb.` into the meaning and the default. */
const meaningOf = ({ description = '', default: given }) => {
  const [, meaning, words] = /^(.*?)(?:\s*Default:? (.+)\.)?$/s.exec(description)
  const isPlain = given !== undefined && typeof given !== 'object'
  return { meaning, byDefault: isPlain ? code(given) : (words ?? '') }
}

const escaped = (text) =>
  text
    .replaceAll('|', '\\|')
    .replaceAll(/(\{\{.*?\}\}|[a-z-]+:<[^ ]*>|[a-z_]+:NAME|<[a-z]+>[^ ,]*)/g, '`$1`')

const isGroup = (schema) => schema.type === 'object' && schema.properties !== undefined

const tableOf = ({ properties, required = [] }, without = []) => {
  const rows = Object.entries(properties)
    .filter(([name, schema]) => !without.includes(name) && !isGroup(schema))
    .map(([name, schema]) => {
      const { meaning, byDefault } = meaningOf(schema)
      const last = required.includes(name) ? 'required' : escaped(byDefault)
      return `| \`${name}\` | ${valueOf(schema)} | ${last} | ${escaped(meaning)} |`
    })
  return ['| key | value | default | meaning |', '| --- | --- | --- | --- |', ...rows, ''].join(
    '\n',
  )
}

const webhooksPart = () => {
  const { properties, $defs } = toJsonSchema('webhooks')
  const { items } = properties.webhooks
  const tests = $defs.filter.additionalProperties.anyOf.at(-1)
  const { workspace, outputs, commit, pull_request, source, budget, approve } = items.properties
  const maps = { workspace, outputs, commit, pull_request, source, budget, approve }
  for (const [name, { description }] of Object.entries(maps))
    items.properties[name] = { type: 'object', description }
  return `## webhooks.yaml

\`webhooks:\` is a list; each entry is one webhook. \`doorward help webhooks\` explains them, \`doorward webhook add\` writes one.

${tableOf(items)}
A value of \`filter\` is text, a number or a boolean, a list of which any has to match, or a map of:

${tableOf(tests)}
A \`workspace\` is a map of the following; \`doorward help workspaces\` explains it:

${tableOf(workspace)}
\`outputs\` is a map of the following; \`doorward help targets\` explains it:

${tableOf({ properties: flattened(outputs) })}
\`commit\` is a map of:

${tableOf(commit)}
\`pull_request\` is a map of:

${tableOf(pull_request)}
\`budget\` is a map with the keys of [that in gateway.yaml](#budget); \`approve\` is \`true\`, \`false\`, or a map with [those there](#approve).

\`source\` is a map of the following; \`doorward webhook connect\` writes it:

${tableOf(source)}`
}

const schedulesPart = () => {
  const { items } = toJsonSchema('schedules').properties.schedules
  const { items: rule } = toJsonSchema('webhooks').properties.webhooks
  // The fields of a rule are explained there.
  const ofRules = Object.keys(items.properties).filter(
    (name) => rule.properties[name] && name !== 'context' && name !== 'enabled',
  )
  return `## schedules.yaml

\`schedules:\` is a list; each entry is one schedule. \`doorward help schedules\` explains them, \`doorward schedule add\` writes one. The file may be missing.

${tableOf(items, ofRules)}
Of [a webhook](#webhooksyaml) it takes ${ofRules.map(code).join(', ')}, which mean the same.`
}

/** A map and the keys of its maps, as `labels.max`. */
const flattened = ({ properties }) =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) => [
      [name, schema.properties ? { type: 'object', description: schema.description } : schema],
      ...Object.entries(schema.properties ?? {}).map(([key, inner]) => [`${name}.${key}`, inner]),
    ]),
  )

const agentsPart = () => {
  const kinds = toJsonSchema('agents').properties.agents.additionalProperties.oneOf
  for (const { properties } of kinds)
    for (const name of ['budget', 'limits'])
      if (properties[name])
        properties[name] = { type: 'object', description: properties[name].description }
  const [first, ...others] = kinds
  const isCommon = ([name, schema]) =>
    name !== 'kind' &&
    others.every((kind) => JSON.stringify(kind.properties[name]) === JSON.stringify(schema))
  const common = Object.fromEntries(Object.entries(first.properties).filter(isCommon))
  const hidden = ['kind', ...Object.keys(common)]

  const groups = new Map()
  for (const kind of kinds) {
    const table = tableOf(kind, hidden)
    const known = groups.get(table) ?? []
    groups.set(table, [...known, kind])
  }
  const parts = [...groups].map(([table, members]) => {
    const names = members.map(({ properties }) => code(properties.kind.const)).join(', ')
    const words =
      members.length === 1
        ? members[0].description
        : 'Runs the program of that name, with no tools unless tools or args grant them.'
    const isEmpty = table.split('\n').length < 4
    return `### kind: ${names}\n\n${escaped(words)}\n\n${isEmpty ? '' : table}`
  })
  return `## agents.yaml

\`agents:\` is a map of a name of yours to one agent, which has a \`kind\`. \`doorward help agents\` explains them, \`doorward agent add\` writes one.

Every kind takes:

${tableOf({ properties: common })}
${parts.join('\n')}`
}

const gatewayPart = () => {
  const parts = []
  const add = (path, given) => {
    // Of `true` or a map, the map.
    const map = given.anyOf?.find(isGroup)
    const schema = map ? { ...map, description: given.description } : given
    const words = schema.description ? `${escaped(schema.description)}\n\n` : ''
    if (isGroup(schema)) {
      const table = tableOf(schema)
      const hasKeys = table.split('\n').length > 3
      if (hasKeys || words) parts.push(`### ${path}\n\n${words}${hasKeys ? table : ''}`)
      for (const [name, inner] of Object.entries(schema.properties))
        if (isGroup(inner) || inner.additionalProperties?.properties) add(`${path}.${name}`, inner)
    } else if (schema.additionalProperties?.properties)
      parts.push(`### ${path}.NAME\n\n${words}${tableOf(schema.additionalProperties)}`)
    else throw new Error(`${path} is neither a group nor a map of entries`)
  }
  const groups = Object.entries(toJsonSchema('gateway').properties)
  const isList = ([, { type }]) => type === 'array'
  const lists = Object.fromEntries(groups.filter(isList))
  if (Object.keys(lists).length > 0) parts.push(tableOf({ properties: lists }))
  for (const [name, schema] of groups.filter((group) => !isList(group))) add(name, schema)
  return `## gateway.yaml

Everything has a default: the file may be empty. \`doorward help providers\` explains \`providers:\`, \`doorward help targets\` \`targets:\`.

${parts.join('\n')}`
}

/** How each was held against its sender; what is not named is known from its documents. */
const checkedBy = {
  'its own library':
    'github stripe slack standard-webhooks shopify linear notion hubspot paddle todoist square razorpay twitch discord sendgrid twilio resend clerk openai workos elevenlabs sanity',
  'another published library':
    'typeform calendly cal-com trello zendesk asana netlify monday aws-sns',
  'published source or vectors':
    'gitlab gitea sentry discourse grafana woocommerce circleci zoom dropbox cloudevents buildkite meta',
  'a test by its documents':
    'bitbucket jira azure-devops pagerduty vercel terraform lemon-squeezy xero intercom telegram mailgun microsoft-graph docusign paystack airtable line clickup figma mux cloudflare box x',
}
const howChecked = (name) =>
  Object.entries(checkedBy).find(([, names]) => names.split(' ').includes(name))?.[0] ??
  'from the documents, not tried'

const senderRow = ({ name, title, source, secretIs, where, deliveryId }) => {
  const aliases = Object.entries(schemeAliases).flatMap(([alias, of]) =>
    of === name ? [alias] : [],
  )
  const also = aliases.length === 0 ? '' : `, ${aliases.map(code).join(', ')}`
  const { source: from } = deliveryId
  const ids = [
    ...(from ? [`${code(from.header)} with the id, or ${code(from.field)}`] : []),
    ...(deliveryId.body === undefined ? [] : [`${code(deliveryId.body)} in the body`]),
    ...deliveryId.headers.map((header) => code(header)),
  ]
  const secret = `${secretIs}; ${where}`.replaceAll('|', '\\|')
  return `| ${code(name)}${also} | [${title}](${source}) | ${secret} | ${ids.join(', ') || 'nothing'} | ${howChecked(name)} |`
}

const sendersTable = () =>
  [
    '| scheme | sender | the secret, and where the address is entered | what names a delivery | checked by |',
    '| --- | --- | --- | --- | --- |',
    ...presetSchemes.toSorted((a, b) => a.name.localeCompare(b.name)).map(senderRow),
  ].join('\n')

const begin = '<!-- senders: made by scripts/write-configuration.mjs -->'
const end = '<!-- end of senders -->'

const withSenders = (text) => {
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error('docs/webhooks.md has no place for the senders')
  return `${text.slice(0, from + begin.length)}\n\n${sendersTable()}\n\n${text.slice(to)}`
}

const make = async (name, text) => {
  const target = new URL(`../docs/${name}`, import.meta.url)
  const style = await resolveConfig(fileURLToPath(target))
  return { target, page: await format(text, { ...style, parser: 'markdown' }) }
}

const configuration = await make(
  'configuration.md',
  [introduction, webhooksPart(), agentsPart(), schedulesPart(), gatewayPart()].join('\n'),
)
const webhooks = await make(
  'webhooks.md',
  withSenders(readFileSync(new URL('../docs/webhooks.md', import.meta.url), 'utf8')),
)

if (process.argv.includes('--print')) process.stdout.write(configuration.page)
else if (process.argv.includes('--print-webhooks')) process.stdout.write(webhooks.page)
else {
  for (const { target, page } of [configuration, webhooks]) writeFileSync(target, page)
  for (const name of ['webhooks', 'agents', 'gateway', 'schedules'])
    writeFileSync(
      new URL(`../config/schema/${name}.json`, import.meta.url),
      `${JSON.stringify(toJsonSchema(name), null, 2)}\n`,
    )
}
