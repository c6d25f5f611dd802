import { Router } from '@koa/router'
import type { ProviderSummary, TokenSummary } from '../../shared/api.ts'
import type { Gateway } from '../../shared/config.ts'
import type { Home } from '../../shared/home.ts'
import type { Log } from '../log.ts'

/** A login or logout, as it goes to the list of events. */
export type OAuthEvent = {
  readonly what: string
  readonly provider: string
  readonly state: 'done' | 'failed'
  readonly code?: string
  readonly detail?: string
}

export type OAuthDependencies = {
  readonly home: Home
  readonly gateway: Gateway
  readonly env: NodeJS.ProcessEnv
  readonly log: Log
  readonly announce: (event: OAuthEvent) => void
}

export type OAuth = {
  readonly routes: Router
  readonly tokens: () => Promise<TokenSummary[]>
  readonly providers: () => Promise<ProviderSummary[]>
  readonly close: () => Promise<void>
}

/** The seam the logins come in at. */
export const createOAuth = async (_dependencies: OAuthDependencies): Promise<OAuth> => ({
  routes: new Router(),
  tokens: async () => [],
  providers: async () => [],
  close: async () => undefined,
})
