// got as heed check meets it.
//
//	heed check --lines -- node got.mjs best
import got from 'got';
import { best, serve, version } from './lines.mjs';

const settings = best ? {
  timeout: { request: 3000 },
  retry: { limit: 5, backoffLimit: 2000, maxRetryAfter: 60_000, statusCodes: [408, 425, 429, 500, 502, 503, 504] },
} : {};
const claims = best ? ['retry', 'timeout=3s'] : ['retry'];

serve('got', version('got'), claims, async task => {
  const { method, url, header: headers, body, signal } = task;
  const answer = await got(url, { ...settings, method, headers, body, signal });
  return answer.statusCode;
});
