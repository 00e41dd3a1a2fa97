// Login, its failure, its end, and log out.
import { expect, logIn, test } from './page';

test.use({ allow: [/401/] });

test('a wrong password is said, and nothing is stored', async ({ page }) => {
  await page.goto(process.env.CONSOLE!);
  await page.getByLabel('User').fill('root');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect(page.getByRole('alert')).toContainText('refused');
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

test('an ended token leads to the form and back to the same page', async ({ page }) => {
  await logIn(page, '#/loads?table=clicks');
  await page.evaluate(() => sessionStorage.setItem('tributary.session', JSON.stringify({ user: 'root', token: 'x', authorization: 'Bearer trb_00' })));
  await page.reload();
  await expect(page.getByText('The login has ended')).toBeVisible();
  expect(page.url()).toContain('#/loads?table=clicks');
  await logIn(page, '#/loads?table=clicks');
  await expect(page.getByRole('heading', { name: 'Loads' })).toBeVisible();
});

test('a reload keeps the login, and log out drops the token', async ({ page }) => {
  await logIn(page);
  await page.reload();
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
  const stored = await page.evaluate(() => sessionStorage.getItem('tributary.session')!);
  expect(stored).toContain('Bearer trb_');
  const dropped = page.waitForResponse((response) => response.request().postData()?.includes('DROP TOKEN') ?? false);
  await page.getByRole('button', { name: 'Log out' }).click();
  await expect(page.getByLabel('Password')).toBeVisible();
  expect(await (await dropped).json()).toMatchObject({ code: 0 });
  const { authorization } = JSON.parse(stored) as { authorization: string };
  const answer = await page.request.post(new URL('../api/query/internal', process.env.CONSOLE).href, { headers: { authorization }, data: { stmt: 'SELECT 1' } });
  expect(answer.status()).toBe(401);
});
