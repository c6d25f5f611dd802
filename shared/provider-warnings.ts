import { builtInProviders } from './config.ts'
import { nearest } from './nearest.ts'
import type { Warning } from './warning.ts'
import type { Config } from './load-config.ts'

/** Providers of gateway.yaml that nobody can log in to, as nothing says where. */
export const providerWarnings = ({ gateway }: Config): Warning[] =>
  Object.entries(gateway.providers)
    .filter(([name]) => !isBuiltIn(name))
    .flatMap(([name, { issuer, authorization_endpoint, token_endpoint }]): Warning[] => {
      if (issuer !== undefined) return []
      const missing = [
        ...(authorization_endpoint === undefined ? ['authorization_endpoint'] : []),
        ...(token_endpoint === undefined ? ['token_endpoint'] : []),
      ]
      if (missing.length === 0) return []
      const entry = `providers.${name}`
      const meant = nearest(name, builtInProviders)
      return [
        {
          code: 'provider-incomplete',
          detail: `provider ${name} has neither an issuer nor ${missing.map(withArticle).join(' and ')}: nobody can log in there`,
          hint: `${meant === undefined ? '' : `${meant} else `}set ${entry}.issuer in gateway.yaml, or ${missing.map((key) => `${entry}.${key}`).join(' and ')}`,
        },
      ]
    })

const isBuiltIn = (name: string): boolean => builtInProviders.some((known) => known === name)

const withArticle = (key: string): string => `${key.startsWith('a') ? 'an' : 'a'} ${key}`
