import type { HookSettings } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { TokenSource } from '../delivery/token.ts'
import { listAt, textAt, valueAt } from '../util/payload-path.ts'
import { type ApiRequest, type ApiResponse, nextPath } from './api-request.ts'
import type { PastDelivery, SenderHook, SenderApi } from './sender-api.ts'

/** How the hooks of a sender differ from those of others. */
export type HookDialect = {
  readonly title: string
  readonly baseUrl: string
  readonly request: ApiRequest
  /** The path of the hooks of a repository or project, or of an organisation or group. */
  readonly hooksOf: (repository: string, signal: AbortSignal) => string | Promise<string>
  /** The whole hook: senders remove a secret that is missing. */
  readonly toBody: (settings: HookSettings, path: string) => object
  readonly newBody?: object
  readonly toHook: (item: unknown) => SenderHook[]
  readonly updateMethod: 'PATCH' | 'PUT'
  readonly pingPath: string
  readonly lastPath: string
  readonly toDelivery: (item: unknown) => PastDelivery[]
  readonly hints: Readonly<Record<number, string>>
}

export const createHookCalls = ({
  title,
  request,
  hooksOf,
  hints,
  ...dialect
}: HookDialect): Omit<SenderApi, 'title' | 'past'> => ({
  listHooks: async (repository, signal) => {
    const hooks: SenderHook[] = []
    let path: string | undefined = `${await hooksOf(repository, signal)}?per_page=100`
    // No repository has as many as ten pages hold.
    for (let page = 1; path !== undefined && page <= 10; page += 1) {
      const { json, headers }: ApiResponse = await request(path, { signal, hints })
      hooks.push(...toList(json, title).flatMap(dialect.toHook))
      path = nextPath(headers['link']?.toString(), dialect.baseUrl)
    }
    return hooks
  },
  saveHook: async ({ repository, hookId }, settings, signal) => {
    const path = await hooksOf(repository, signal)
    const body = dialect.toBody(settings, path)
    const response = await request(hookId === undefined ? path : `${path}/${hookId}`, {
      signal,
      hints,
      handles: [422],
      method: hookId === undefined ? 'POST' : dialect.updateMethod,
      body: hookId === undefined ? { ...dialect.newBody, ...body } : body,
    })
    const id = hookId ?? valueAt(response.json, ['id'])
    if (response.status !== 422 && typeof id === 'number') return id
    const why = describeRefusal(response.json)
    throw new DoorwardError('source-failed', `${title} refuses the hook: ${why}`, {
      hint: `does server.public_url name an address that ${title} can reach?`,
    })
  },
  deleteHook: async ({ repository, hookId }, signal) => {
    const path = await hooksOf(repository, signal)
    // Says whether the hooks may be seen at all: without the scope senders answer 404 too.
    await request(`${path}?per_page=1`, { signal, hints })
    const options = { signal, hints, handles: [404], method: 'DELETE' } as const
    const { status } = await request(`${path}/${hookId}`, options)
    return status !== 404
  },
  pingHook: async ({ repository, hookId }, signal) => {
    const path = `${await hooksOf(repository, signal)}/${hookId}/${dialect.pingPath}`
    // 422: the address did not answer 2xx, or there is no commit yet. Whether one came is seen here.
    await request(path, { signal, hints, handles: [422], method: 'POST' })
  },
  lastDelivery: async ({ repository, hookId }, signal) => {
    const path = `${await hooksOf(repository, signal)}/${hookId}/${dialect.lastPath}`
    // 404: before GitLab 17.3 there is no such list.
    const { json, status } = await request(path, { signal, hints, handles: [404] })
    return status === 404 ? undefined : toList(json, title).flatMap(dialect.toDelivery)[0]
  },
})

/** A page has at most a hundred items, however long an answer is. */
export const toList = (json: unknown, title: string): readonly unknown[] => {
  if (Array.isArray(json)) return (json as readonly unknown[]).slice(0, 100)
  throw new DoorwardError('source-failed', `${title} returned no list`)
}

/** The words of a refusal that are safe to show, such as `Hook already exists on this repository`. */
const describeRefusal = (json: unknown): string => {
  const reasons = listAt(json, 'errors')
    .map((error) => (typeof error === 'string' ? error : valueAt(error, ['message'])))
    .filter((reason) => typeof reason === 'string')
  const text = reasons.length > 0 ? reasons.join('; ') : textAt(json, 'message')
  return text === undefined ? 'it does not say why' : toPlainLine(text).slice(0, 200)
}

export const scopeMissing = (
  { tokenEnv, provider }: TokenSource,
  scope: string,
  otherScopes: readonly string[],
): DoorwardError =>
  new DoorwardError('scope-missing', `the token may not manage hooks: it lacks ${scope}`, {
    hint:
      tokenEnv === undefined
        ? `doorward oauth login ${provider} --scopes ${[...otherScopes, scope].join(',')}`
        : `give the token in ${tokenEnv} the scope ${scope}`,
    about: { scope, ...(tokenEnv === undefined && { provider }) },
  })
