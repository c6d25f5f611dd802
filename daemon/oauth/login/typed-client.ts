import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../provider/client-file.ts'

/**
 * The options of `oauth login` that a login was given its client with and that the next one would need
 * again: a client is remembered only when a login has worked. Empty when the next needs none.
 */
export const typedClient = (client: Client, known: Client | undefined): string => {
  const isIdNew = client.clientId !== known?.clientId
  const isSecretNew =
    client.clientSecret !== undefined && (isIdNew || client.clientSecret !== known?.clientSecret)
  // What no shell could take for anything else; the id of a client is no secret.
  const id = /^[\w.:@/+-]+$/.test(client.clientId) ? client.clientId : 'ID'
  return `${isIdNew ? ` --client-id ${id}` : ''}${isSecretNew ? ' --client-secret-stdin' : ''}`
}

/** An error whose hint, where that is to log in to this provider, names such options too. */
export const withTypedClient = (
  error: DoorwardError,
  provider: string,
  options: string,
): DoorwardError => {
  if (options === '') return error
  const command = `doorward oauth login ${provider}`
  const { code, message, cause, hint = command } = error
  const at = hint.lastIndexOf(command)
  if (at < 0) return error
  const given = hint.slice(at + command.length)
  if (/^[\w-]/.test(given)) return error
  const added = options
    .split(/ (?=--)/)
    .filter((option) => option !== '' && !given.includes(option.split(' ')[0] ?? ''))
    .map((option) => ` ${option}`)
    .join('')
  const start = hint.slice(0, at + command.length)
  return new DoorwardError(code, message, { cause, hint: `${start}${added}${given}` })
}
