import { type DotPath, parseTemplate } from '../shared/templates.ts'
import type { Webhook } from '../shared/config/webhook.ts'

type Node = { [name: string]: unknown }

/**
 * A payload that passes the filter of a webhook and brings the canary into its prompt, through every
 * value that the template asks for. Values that a target asks for are plain words.
 */
export const canaryPayload = (webhook: Webhook, canary: string): Node => {
  const payload: Node = { doorward_canary: canary }
  for (const path of pathsIn(webhook.prompt.parts)) put(payload, path, canary)
  for (const target of webhook.targets)
    for (const path of pathsIn(parseTemplate(target.text).parts))
      put(payload, path, 'privacy-check')
  for (const { path, expected } of webhook.filter) put(payload, path, expected[0])
  return payload
}

const pathsIn = (parts: readonly (string | DotPath)[]): DotPath[] =>
  parts.filter((part) => typeof part !== 'string').filter((path) => path.length > 0)

/** Lists are maps with numbers for names here: a path leads through both alike. */
const put = (payload: Node, path: DotPath, value: unknown): void => {
  let node = payload
  for (const name of path.slice(0, -1)) {
    const next = Object.hasOwn(node, name) ? node[name] : undefined
    // What stood there as a text of its own is asked for deeper down as well.
    const inner: Node =
      typeof next === 'object' && next !== null
        ? (next as Node)
        : next === undefined
          ? {}
          : { text: next }
    node[name] = inner
    node = inner
  }
  const last = path.at(-1) ?? ''
  if (typeof node[last] !== 'object' || node[last] === null) node[last] = value
}
