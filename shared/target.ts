import { DoorwardError } from './errors.ts'
import { nearest } from './nearest.ts'
import { type SentKind, addressForms, isAddress, sentKinds } from './target-address.ts'
import { type Template, isFixed, parseTemplate } from './template.ts'

/** Where a result goes. `text` is the value as it stands in the configuration. */
export type Target = { readonly text: string } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: Template }
  | { readonly kind: SentKind; readonly address: Template }
)

/** The forms a `deliver_to` can have, for messages and for the nearest valid name. */
export const targetForms = [
  'none',
  'log',
  'notify:desktop',
  'file:<path>',
  ...sentKinds.map((kind) => `${kind}:…`),
] as const

/** The owner's own chat, named by `targets.telegram.me`. Never made of an event. */
export const ownChat = '@me'

/** Reads one `deliver_to` value. Throws `config-invalid` with the forms that exist. */
export const parseTarget = (text: string): Target => {
  if (text === 'none') return { text, kind: 'none' }
  if (text === 'log') return { text, kind: 'log' }
  if (text === 'notify:desktop') return { text, kind: 'notify' }
  if (text.startsWith('file:')) {
    const path = text.slice('file:'.length).trim()
    if (path === '' || path.endsWith('/'))
      throw new DoorwardError('config-invalid', `target "${text}" names no file`)
    if (path.includes('\0'))
      throw new DoorwardError('config-invalid', 'the path of the file has a NUL character in it')
    return { text, kind: 'file', path: parseTemplate(path) }
  }
  const [before = ''] = text.split(':', 1)
  const kind = sentKinds.find((name) => name === before)
  if (kind !== undefined && text !== kind)
    return { text, kind, address: parseAddress(kind, text, text.slice(kind.length + 1).trim()) }
  const meant =
    nearest(text, ['none', 'log', 'notify:desktop']) ??
    nearest(`${before}:`, ['file:', ...sentKinds.map((name) => `${name}:`)])
  throw new DoorwardError('config-invalid', `unknown target "${text}"`, {
    hint: meant ?? `one of ${targetForms.join(', ')}`,
  })
}

const parseAddress = (kind: SentKind, text: string, address: string): Template => {
  const template = parseTemplate(address)
  if (isFixed(template)) {
    if (isAddress(kind, address) || (kind === 'telegram' && address === ownChat)) return template
    throw new DoorwardError('config-invalid', `target "${text}" cannot be delivered to`, {
      hint: `write ${addressForms[kind]}`,
    })
  }
  if (kind === 'http')
    throw new DoorwardError(
      'config-invalid',
      `target "${text}": an event cannot choose where an http target leads`,
      { hint: `write ${addressForms.http}` },
    )
  return template
}
