import { DoorwardError } from './errors.ts'
import { type Template, parseTemplate } from './template.ts'

/** Where a result goes. `text` is the value as it stands in the configuration. */
export type Target = { readonly text: string } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: Template }
)

/** The forms a `deliver_to` can have, for messages and for the nearest valid name. */
export const targetForms = ['none', 'log', 'notify:desktop', 'file:<path>'] as const

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
  throw new DoorwardError('config-invalid', `unknown target "${text}"`, {
    hint: `one of ${targetForms.join(', ')}`,
  })
}
