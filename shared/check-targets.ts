import { DoorwardError } from './errors.ts'
import { isOwnFile, targetFile } from './file-target.ts'
import { nearest } from './nearest.ts'
import { valueUnder } from './schema-problems.ts'
import { type Target, ownChat, parseTarget } from './target.ts'
import { type Template, isFixed } from './template.ts'
import type { Problem, YamlFile, YamlPath } from './yaml-file.ts'

/**
 * Checks that gateway.yaml has what the targets of webhooks.yaml need: the entry that a name of `discord`
 * or `http` stands for, the bot of `telegram`; and that no file is one of doorward's own, under a home
 * that is known. A target that is wrong in itself is told of elsewhere.
 */
export const checkTargets = (
  webhooks: YamlFile,
  gateway: YamlFile,
  homeFolder: string | undefined,
  problems: Problem[],
): void => {
  const entries = valueUnder(webhooks.value, ['webhooks'])
  if (!Array.isArray(entries)) return
  entries.forEach((entry: unknown, index) => {
    const deliverTo = valueUnder(entry, ['deliver_to'])
    const check = (text: unknown, path: YamlPath) => {
      const lack = typeof text === 'string' ? lackOf(text, gateway, homeFolder) : undefined
      if (lack) problems.push(webhooks.problemAt(path, lack.reason, lack.hint))
    }
    const path = ['webhooks', index, 'deliver_to']
    if (Array.isArray(deliverTo)) deliverTo.forEach((text, place) => check(text, [...path, place]))
    else check(deliverTo, path)
  })
}

type Lack = { readonly reason: string; readonly hint: string }

const lackOf = (
  text: string,
  gateway: YamlFile,
  homeFolder: string | undefined,
): Lack | undefined => {
  const target = readable(text)
  if (target?.kind === 'file') return lackOfFile(target.path, homeFolder)
  // A file that cannot be read at all says nothing of what it would have.
  if (!gateway.isReadable) return undefined
  if (target?.kind === 'telegram') return lackOfTelegram(target.address.source, gateway)
  if (target?.kind !== 'discord' && target?.kind !== 'http') return undefined
  if (!isFixed(target.address)) return undefined
  return lackOfEntry(target.kind, target.address.source, gateway)
}

const lackOfFile = (path: Template, homeFolder: string | undefined): Lack | undefined => {
  // What an event puts in is a plain part of a name: it leads out of none of these folders.
  const example = path.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  if (homeFolder === undefined || !isOwnFile(targetFile(example, homeFolder), homeFolder))
    return undefined
  return {
    reason: "one of doorward's own files, to which no answer is written",
    hint: 'choose another path: file:answers.md',
  }
}

const lackOfEntry = (
  kind: 'discord' | 'http',
  name: string,
  gateway: YamlFile,
): Lack | undefined => {
  const entries = valueUnder(gateway.value, ['targets', kind])
  const known = typeof entries === 'object' && entries !== null ? Object.keys(entries) : []
  if (known.includes(name)) return undefined
  const hint =
    nearest(name, known) ??
    (known.length > 0
      ? `known: ${known.join(', ')}`
      : `define it under targets.${kind}.${name} in gateway.yaml`)
  return { reason: `there is no ${kind} target "${name}"`, hint }
}

const lackOfTelegram = (chat: string, gateway: YamlFile): Lack | undefined => {
  const has = (key: string) =>
    (valueUnder(gateway.value, ['targets', 'telegram', key]) ?? null) !== null
  const lack = (key: string, what: string) => ({
    reason: `targets.telegram.${key} is missing in gateway.yaml`,
    hint: what,
  })
  if (!has('token_env'))
    return lack('token_env', 'name the variable that holds the token of your bot')
  if (chat === ownChat && !has('me')) return lack('me', 'write the number of your own chat')
  return undefined
}

const readable = (text: string): Target | undefined => {
  try {
    return parseTarget(text)
  } catch (error) {
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}
