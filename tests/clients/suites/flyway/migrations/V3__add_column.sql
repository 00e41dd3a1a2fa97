ALTER TABLE people ADD COLUMN city VARCHAR(50) NULL;
UPDATE people SET city = 'Oslo' WHERE name = 'Ada';
CREATE INDEX people_name ON people (name);
