import type { Router, RouterContext } from '@koa/router'
import {
  type DefaultAccount,
  type ImportedLogin,
  type ImportLogin,
  importLoginSchema,
  pastedRedirectSchema,
  setDefaultSchema,
  startLoginSchema,
  type TokenSummary,
} from '../../shared/api/api.ts'
import { isLoginName, isRepository } from '../../shared/config/name-forms.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import { abortOnClose, answer, readSeconds, readText } from '../http/query.ts'
import type { Tokens } from './dependencies.ts'
import type { Logins } from './login/login.ts'
import type { LogOut } from './logout/logout.ts'

const maxWaitMs = 60_000

type OAuthHandlers = {
  readonly logins: Logins
  readonly startLogin: Logins['start']
  readonly importLogin: (request: ImportLogin) => Promise<ImportedLogin>
  /** With the token that gh has. */
  readonly importGh: () => Promise<ImportedLogin>
  readonly logOut: LogOut
  readonly access: Tokens['access']
  readonly listTokens: () => Promise<TokenSummary[]>
  readonly setDefault: (provider: string, account: string | null) => Promise<DefaultAccount>
}

/** The OAuth part of the local API. The guard has let in only the owner's own programs. */
export const createRoutes = ({
  logins,
  startLogin,
  importLogin,
  importGh,
  logOut,
  access,
  listTokens,
  setDefault,
}: OAuthHandlers): Router => {
  const router = exactRouter()

  router.post('/oauth/start', async (ctx) => {
    const started = await startLogin(await readJsonBody(ctx, startLoginSchema))
    answer(ctx, 201, started)
  })

  router.get('/oauth/logins/:loginId', async (ctx) => {
    const loginId = parameter(ctx, 'loginId')
    const waitMs = Math.min(readSeconds(ctx, 'wait') ?? 0, maxWaitMs)
    if (waitMs > 0) await logins.waitForEnd(loginId, waitMs, abortOnClose(ctx))
    answer(ctx, 200, logins.view(loginId))
  })

  router.post('/oauth/logins/:loginId/redirect', async (ctx) => {
    const { url } = await readJsonBody(ctx, pastedRedirectSchema)
    answer(ctx, 200, await logins.paste(parameter(ctx, 'loginId'), url))
  })

  router.delete('/oauth/logins/:loginId', (ctx) => {
    logins.cancel(parameter(ctx, 'loginId'))
    ctx.status = 204
  })

  router.post('/oauth/import', async (ctx) => {
    answer(ctx, 201, await importLogin(await readJsonBody(ctx, importLoginSchema)))
  })

  router.post('/oauth/import/gh', async (ctx) => {
    answer(ctx, 201, await importGh())
  })

  router.get('/oauth/tokens', async (ctx) => {
    answer(ctx, 200, { tokens: await listTokens() })
  })

  router.get('/oauth/tokens/:provider/access', async (ctx) => {
    const request = {
      minValidityMs: readSeconds(ctx, 'min_validity'),
      isExact: ctx.query['exact'] === 'true',
      gitOrigin: readText(ctx, 'git_origin'),
      repository: readRepository(ctx),
      permissions: readPermissions(ctx),
      asker: parseAsker(ctx.get('user-agent')),
    }
    answer(ctx, 200, await access(providerIn(ctx), request))
  })

  router.post('/oauth/default', async (ctx) => {
    const { provider, account } = await readJsonBody(ctx, setDefaultSchema)
    answer(ctx, 200, await setDefault(provider, account))
  })

  router.delete('/oauth/tokens/:provider', async (ctx) => {
    answer(ctx, 200, await logOut(providerIn(ctx), ctx.query['forget'] === 'true'))
  })

  return router
}

const parameter = (ctx: RouterContext, name: string): string => ctx.params[name] ?? ''

const providerIn = (ctx: RouterContext): string => {
  const provider = parameter(ctx, 'provider')
  if (isLoginName(provider)) return provider
  throw new DoorwardError('provider-unknown', 'not the name of a provider')
}

/** `owner/name`, of which a bot's token is. */
const readRepository = (ctx: RouterContext): string | undefined => {
  const text = readText(ctx, 'repository')
  if (text === undefined || isRepository(text)) return text
  throw new DoorwardError('request-invalid', 'repository: owner/name')
}

/** `contents:read`, several with commas. */
const readPermissions = (ctx: RouterContext): Record<string, 'read' | 'write'> | undefined => {
  const text = readText(ctx, 'permissions')
  if (text === undefined) return undefined
  const pairs = text.split(',').map((pair) => /^([a-z_]{1,50}):(read|write)$/.exec(pair))
  if (pairs.length > 30 || pairs.some((pair) => !pair))
    throw new DoorwardError('request-invalid', 'permissions: such as contents:read,checks:write')
  return Object.fromEntries(pairs.map((pair) => [pair?.[1], pair?.[2]]))
}

/** The name that the calling program gives itself: shown to the owner, never trusted. */
const parseAsker = (userAgent: string): string =>
  toPlainLine(userAgent).trim().slice(0, 100) || 'a program without a name'
