import { isDeepStrictEqual } from 'node:util'
import type { WebhookSource } from '../../shared/config/source.ts'
import { readYaml } from '../../shared/config/yaml.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { yamlText } from './add-entry.ts'

/**
 * Writes or removes the line `source` of an entry of `webhooks.yaml`, without touching a character of the
 * rest. Throws `usage` where that cannot be done, as for an entry in brackets. Pure.
 */
export const setSource = (
  text: string,
  index: number,
  source: WebhookSource | undefined,
): string => {
  const file = readYaml('', text)
  const { webhooks: entries = [] } = (file.value ?? {}) as { webhooks?: Entry[] }
  const before = entries[index]
  const own = (before?.['source'] ?? {}) as Entry
  const isThere = before?.['source'] !== undefined
  // The owner may have written it in another way.
  if (source && isThere && isDeepStrictEqual({ ...own, ...toValue(source) }, own)) return text
  const kept = Object.entries(own).filter(([name]) =>
    ['every', 'catch_up', 'at_most', 'api_url'].includes(name),
  )
  const at = file.problemAt(['webhooks', index, isThere ? 'source' : 'path'], '')
  const lines = text.split('\n')
  const eol = lines[at.line - 1]?.endsWith('\r') ? '\r' : ''
  const line = source && `${' '.repeat(at.column - 1)}${toLine(source, kept)}${eol}`
  // Below the path: what stands at the end of an entry may belong to the text above it.
  const place = isThere ? at.line - 1 : at.line
  const after = lines.toSpliced(place, isThere ? 1 : 0, ...(line === undefined ? [] : [line]))
  const { source: _, ...rest } = before ?? {}
  const entry = {
    ...rest,
    ...(source && { source: { ...toValue(source), ...Object.fromEntries(kept) } }),
  }
  const expected = { webhooks: entries.with(index, entry) }
  const changed = after.join('\n')
  const { value, problems } = readYaml('', changed)
  if (problems.length === 0 && isDeepStrictEqual(value, expected)) return changed
  throw new DoorwardError(
    'usage',
    'the line source cannot be changed the way the entry is written',
    {
      hint: source
        ? `write it by hand (doorward config edit webhooks): ${toLine(source, kept)}`
        : 'remove it by hand: doorward config edit webhooks',
    },
  )
}

type Entry = Readonly<Record<string, unknown>>

/** With the settings that it had before. */
const toLine = (source: WebhookSource, kept: readonly (readonly [string, unknown])[]): string => {
  const named = Object.entries(toValue(source)).map(([name, value]) => [
    name,
    typeof value === 'string' ? yamlText(value) : value,
  ])
  const settings = [...named, ...kept].map(([name, value]) => `${String(name)}: ${String(value)}`)
  return `source: { ${settings.join(', ')} }`
}

const toValue = ({ provider, repository, hookId, mode, keyEnv }: WebhookSource) => ({
  provider,
  ...(keyEnv === undefined ? { repository, hook_id: hookId } : { key_env: keyEnv }),
  ...(mode && { mode }),
})
